"""One case by real torch: in which order it is measured, what is held against what, what is said of its compiling."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from experiments import ARTICLE
from reportkit.bench import timing
from reportkit.plan import Case, Here, Sides

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reportkit.bench.messages import Answer

pytestmark = pytest.mark.torch

HERE = Here(scale="smoke", device="cpu")
CASE = Case(experiment="timed", axes={"kind": "a"}, workload="none", cost={"full": 1, "smoke": 1})


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time no longer than it takes to see what happens; no time is asserted."""
    monkeypatch.setitem(timing.PACES, "smoke", timing.Pace(warm_up=0.01, budget=0.5))


def measured(sides: Sides, folder: Path, one: Case = CASE) -> Answer:
    """Return the answer for a timing case of these sides, measured in this process."""
    from reportkit.bench import case

    experiment = next(e for e in ARTICLE.experiments if e.kind == "timing")
    timed = replace(experiment, id="timed", cases=(one,), prepare=lambda _case, _here: sides)
    with (folder / "answers").open("wb") as stream:
        return case.measure(timed, one, HERE, case.Progress(one.name, stream.fileno()))


class Training:
    """A step of training, eager and compiled, each on a model of its own, and what can be compared of it."""

    def __init__(self, step: float = 0.05) -> None:
        """Build the models; `step` is how far the compiled side goes, where eager goes 0.05."""
        import torch

        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
        self.numbers = torch.randn(32, 8)
        self.models = {side: copy.deepcopy(model) for side in ("eager", "compiled", "exact", "start")}
        self.models["exact"].double()
        self.step = step
        self.log: list[str] = []

    def trained(self, side: str, call: Callable[..., Any]) -> Any:
        """Make one step with a model that `call` runs; return the loss."""
        import torch

        exact = side == "exact"
        optimizer = torch.optim.AdamW(self.models[side].parameters(), lr=self.step if side == "compiled" else 0.05)
        loss = call(self.numbers.double() if exact else self.numbers).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    def sides(self) -> Sides:
        """Return the timed steps, whose losses fall, with a check from the starting state."""
        import torch

        run = {
            side: torch.compile(model, backend="aot_eager") if side == "compiled" else model
            for side, model in self.models.items()
        }
        twins: dict[str, Training] = {}

        def timed(side: str) -> Callable[[], Any]:
            def call() -> Any:
                self.log.append(side)
                return self.trained(side, run[side])

            return call

        def check(side: str) -> Callable[[], Any]:
            def call() -> Any:
                self.log.append(f"check {side}")
                if side not in twins:
                    twins[side] = Training(self.step)
                    twins[side].numbers = self.numbers
                twin = twins[side]
                model = twin.models[side]
                model.load_state_dict(twin.models["start"].state_dict())
                compiled = torch.compile(model, backend="aot_eager") if side == "compiled" else model
                return twin.trained(side, compiled), [one.detach() for one in model.parameters()]

            return call

        return Sides(
            eager=timed("eager"),
            compiled=timed("compiled"),
            reference=None,
            tolerance=1e-4,
            check=Sides(
                eager=check("eager"),
                compiled=check("compiled"),
                reference=check("exact"),
                tolerance=1e-3,
                inputs=(self.numbers,),
            ),
        )


@pytest.mark.slow
@pytest.mark.every_lane
def test_a_training_step_is_timed_as_it_goes_and_compared_from_its_starting_state(tmp_path: Path) -> None:
    import torch

    from reportkit.bench import counters

    training = Training()
    before = training.numbers.clone()
    seen: list[int] = []
    sides = training.sides()
    assert sides.check is not None
    check = sides.check

    def watched() -> object:
        seen.append(counters.unique_graphs())
        return check.compiled()

    answer = measured(replace(sides, check=replace(check, compiled=watched)), tmp_path)

    assert answer.status == "complete", answer.traceback
    assert answer.correctness is not None
    assert answer.correctness.right, answer.correctness.detail
    assert answer.correctness.compiled_error is not None
    assert set(answer.measurements) >= {"first_call", "eager_wall", "compiled_wall", "entire_frame_compile"}
    # First the timed calls, so that the check has compiled nothing for them; and all of the check in one go.
    firsts = ["eager", "eager", "compiled", "compiled", "compiled"]
    checks = ["check eager", "check eager", *["check compiled"] * 3, "check exact"]
    assert training.log[: len(firsts + checks)] == firsts + checks
    assert seen[0] == answer.counters["unique_graphs"] == 1
    assert answer.counters["recompiles"] == 0
    assert not answer.findings["graph-breaks"].holds
    for side in ("eager", "compiled"):
        moved = zip(training.models[side].parameters(), training.models["start"].parameters(), strict=True)
        assert not any(torch.equal(one, start) for one, start in moved)
    assert torch.equal(training.numbers, before)


def test_a_compiled_step_that_trains_otherwise_is_shown_wrong(tmp_path: Path) -> None:
    answer = measured(Training(step=0.02).sides(), tmp_path, replace(CASE, steady=False))
    assert answer.status == "complete", answer.traceback
    assert answer.correctness is not None
    assert not answer.correctness.right
    assert answer.correctness.detail == "the compiled error against fp64 is larger than eager's allows"


def test_without_a_check_a_training_step_can_not_be_compared(tmp_path: Path) -> None:
    answer = measured(replace(Training().sides(), check=None), tmp_path, replace(CASE, steady=False))
    assert answer.correctness is not None
    assert not answer.correctness.right
    assert answer.correctness.detail.startswith("two eager runs from the same seed differ")


def plain(compiled: Callable[[], Any]) -> Sides:
    import torch

    return Sides(eager=lambda: torch.ones(4) + 1, compiled=compiled, reference=None, tolerance=1e-4)


def test_a_check_that_is_right_does_not_excuse_timed_calls_of_other_shapes(tmp_path: Path) -> None:
    import torch

    right = plain(lambda: torch.ones(4) + 1)
    answer = measured(replace(plain(lambda: torch.ones(3) + 1), check=right), tmp_path, replace(CASE, steady=False))
    assert answer.correctness is not None
    assert not answer.correctness.right
    assert answer.correctness.detail.startswith("what is timed returns other shapes or types on either side")


def test_a_kept_check_is_found_out_by_other_inputs(tmp_path: Path) -> None:
    import torch

    numbers = torch.arange(5)
    kept = numbers * 2
    check = Sides(eager=lambda: numbers * 2, compiled=lambda: kept, reference=None, tolerance=1e-4, inputs=(numbers,))
    answer = measured(replace(plain(lambda: torch.ones(4) + 1), check=check), tmp_path)
    assert answer.correctness is not None
    assert answer.correctness.detail.startswith("after its inputs were changed in place, compiled did not follow eager")


def test_where_nothing_is_compiled_nothing_is_said_of_breaks_and_no_time_is_made_up(tmp_path: Path) -> None:
    import torch

    answer = measured(plain(lambda: torch.ones(4) + 1), tmp_path, replace(CASE, steady=False))
    assert answer.status == "complete", answer.traceback
    assert answer.counters["unique_graphs"] == 0
    assert "graph-breaks" not in answer.findings
    assert not answer.measurements.keys() & {"entire_frame_compile", "backend_compile"}
    timers = answer.findings["compile-timers"]
    assert (timers.holds, timers.evidence["reason"]) == (False, "nothing was compiled in the first call")


def test_a_timer_that_this_version_does_not_have_is_missed_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from reportkit.bench import counters

    monkeypatch.setitem(counters.TIMERS, "backend_compile", ("no such timer",))
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    answer = measured(plain(lambda: compiled(torch.ones(4))), tmp_path, replace(CASE, steady=False))
    assert answer.measurements["entire_frame_compile"].samples[0] > 0
    assert "backend_compile" not in answer.measurements
    reason = "this version of PyTorch has no timer known as backend_compile"
    assert answer.findings["compile-timers"].evidence["reason"] == reason


def test_reasons_of_breaks_are_capped_in_number_and_length_and_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    import torch

    from reportkit.bench import case, counters

    reasons = {f"{number} in {sys.prefix}/lib " + "x" * 300 + "\n  Hint: none": 1 for number in range(20)}
    monkeypatch.setattr(counters, "break_reasons", lambda: reasons | {"often": 5})
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    answer = measured(plain(lambda: compiled(torch.ones(4))), tmp_path, replace(CASE, steady=False))
    breaks = answer.findings["graph-breaks"]
    assert breaks.holds
    assert breaks.evidence["often"] == 5
    assert len(breaks.evidence) == case.MOST_REASONS + 1
    assert sum(int(number or 0) for number in breaks.evidence.values()) == 25
    assert max(map(len, breaks.evidence)) <= case.LONGEST_REASON
    assert not [reason for reason in breaks.evidence if sys.prefix in reason or "\n" in reason]
