"""Sections 6 to 8 by real torch on a CPU: the work that is timed is the work that is meant, on both sides."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from experiments import ARTICLE
from reportkit.plan import Here, Sides, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reportkit.plan import Case
    from reportkit.records import Finding

HERE = Here(scale="smoke", device="cpu")


def planned(name: str) -> Case:
    return next(c for e in ARTICLE.experiments for c in e.cases if c.name == name)


def prepared(name: str, **axes: str) -> Any:
    case = planned(name)
    case = replace(case, axes={**case.axes, **axes})
    return ARTICLE.experiment(case.experiment).prepare(case, HERE)


def observed(name: str) -> Mapping[str, Finding]:
    found: Mapping[str, Finding] = prepared(name)()
    assert all(
        value is None or isinstance(value, (str, int, float))
        for one in found.values()
        for value in one.evidence.values()
    )
    return found


def compared(sides: Sides) -> Any:
    from reportkit.bench.correctness import compare, kept

    first, second, ours = (kept(call, HERE)[1] for call in (sides.eager, sides.eager, sides.compiled))
    return compare(first, second, ours, sides)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile without generating code, which takes a CPU minutes and changes nothing about what is asked here."""
    import torch

    torch._dynamo.reset()
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))


def by_hand(workload: str, steps: int) -> list[Any]:
    """Return the losses of some steps of training in fp32, written out."""
    import torch
    from torch.nn import functional as F  # noqa: N812 -- as everybody calls it

    from experiments import workloads

    model, inputs = getattr(workloads, workload)(HERE)
    rate = 1e-6
    seen = []
    if workload == "dcgan_training":
        images, noise, _, _ = inputs
        generator, critic = model["generator"], model["critic"].layers
        learn = {name: torch.optim.AdamW(part.parameters(), lr=rate) for name, part in model.items()}

        def judged(pictures: Any, truth: float) -> Any:
            logits = critic(pictures).flatten()
            return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, truth))

        for _ in range(steps):
            fakes = generator(noise)
            learn["critic"].zero_grad()
            loss = judged(images, 1.0) + judged(fakes.detach(), 0.0)
            loss.backward()
            learn["critic"].step()
            seen.append(loss.detach())
            learn["generator"].zero_grad()
            loss = judged(fakes, 1.0)
            loss.backward()
            learn["generator"].step()
            seen.append(loss.detach())
        return seen
    network, (*given, classes) = model["learner"].network, inputs
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        logits = network(*given)
        loss = F.cross_entropy(getattr(logits, "logits", logits), classes)
        loss.backward()
        optimizer.step()
        seen.append(loss.detach())
    return seen


TRAINED = [("resnet50", "resnet50_training"), ("bert", "bert_training"), ("dcgan", "dcgan_training")]


@pytest.mark.torch
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("name", "workload"), TRAINED)
def test_a_training_step_is_forward_loss_backward_and_adamw(name: str, workload: str) -> None:
    import torch

    sides = prepared(f"training.{name}-a", precision="d")
    one_state = [*sides.eager(), *sides.compiled(), *sides.eager()]
    expected = by_hand(workload, 3)
    assert len(one_state) == len(expected)
    assert abs(float(expected[-1] - expected[len(expected) // 3 - 1])) > 1e-4, "what is learned is lost in rounding"
    # Both sides train one model: the second step, compiled, goes on from where eager's first has led.
    torch.testing.assert_close(torch.stack(one_state), torch.stack(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.torch
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("precision", ["d", "a"])
@pytest.mark.parametrize("name", ["resnet50", "bert", "dcgan"])
def test_training_is_checked_at_the_weights_that_it_began_with(name: str, precision: str) -> None:
    import torch

    torch.manual_seed(3)
    sides = prepared(f"training.{name}-a", precision=precision)
    before = sides.check.eager()
    drawn = torch.get_rng_state()
    losses = [sides.eager()[0] for _ in range(3)]
    assert len({float(loss) for loss in losses}) == 3, "nothing is learned"
    torch.set_rng_state(drawn)
    assert all(torch.equal(a, b) for a, b in zip(before, sides.check.eager(), strict=True))
    assert torch.equal(drawn, torch.get_rng_state())
    assert compared(sides.check).right, compared(sides.check)
    # What was learned so far is still there.
    assert float(sides.eager()[0]) not in {float(loss) for loss in losses[:2]}


@pytest.mark.torch
@pytest.mark.usefixtures("quick")
def test_a_gradient_that_is_wrong_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from experiments import workloads

    class Tampered(torch.autograd.Function):  # type: ignore[misc]  # Torch is not installed where types are checked.
        @staticmethod
        def forward(_context: Any, loss: Any) -> Any:
            return loss.clone()

        @staticmethod
        def backward(_context: Any, gradient: Any) -> Any:
            return gradient * 1.05

    sides = prepared("training.dcgan-a", precision="d")
    assert compared(sides.check).right
    model, inputs = workloads.dcgan_training(HERE)
    monkeypatch.setattr(workloads, "dcgan_training", lambda _here: (model, inputs))
    monkeypatch.setattr(
        torch, "compile", lambda part: lambda *given: Tampered.apply(part(*given)) if len(given) == 2 else part(*given)
    )
    wrong = compared(prepared("training.dcgan-a", precision="d").check)
    assert not wrong.right
    assert "larger than eager's allows" in wrong.detail


@pytest.mark.torch
@pytest.mark.usefixtures("quick")
def test_the_forward_part_keeps_what_a_backward_pass_needs() -> None:
    import torch

    packed = []

    def pack(tensor: Any) -> Any:
        packed.append(tensor)
        return tensor

    sides = prepared("forward.bert-a")
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        sides.eager()
    assert packed
    assert compared(sides.check).right


@pytest.mark.torch
@pytest.mark.usefixtures("quick")
def test_experts_get_the_tokens_that_were_routed_to_them() -> None:
    import torch

    from experiments import workloads

    model, (tokens,) = workloads.mixture(HERE)
    with torch.no_grad():
        shares = model.router(tokens).softmax(-1)
        for one, result in zip(tokens, model(tokens), strict=True):
            best = shares[(tokens == one).all(-1)][0].topk(2)
            expected = sum(share * model.experts[i](one) for share, i in zip(best.values, best.indices, strict=True))
            torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-6)
        others = (model.choose(tokens) + 1) % len(model.experts)
        assert not torch.allclose(model(tokens), model(tokens, others))
    assert compared(prepared("moe.moe-h").check).right


@pytest.mark.torch
def test_a_near_tie_is_routed_as_eager_did(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiled layer that rounds a score the other way is right by its check, although its timed result differs."""
    import torch

    from experiments import workloads

    model, inputs = workloads.mixture(HERE)

    def flipped(tokens: Any, chosen: Any = None) -> Any:
        return model(tokens, (model.choose(tokens) + 1) % 8 if chosen is None else chosen)

    monkeypatch.setattr(workloads, "mixture", lambda _here: (model, inputs))
    monkeypatch.setattr(torch, "compile", lambda _model: flipped)
    sides = prepared("moe.moe-h")
    assert not torch.allclose(sides.eager(), sides.compiled())
    assert compared(sides.check).right


@pytest.mark.torch
def test_the_dense_layer_is_as_much_work_as_two_experts_a_token() -> None:
    from experiments import workloads

    def products(module: Any) -> int:
        return sum(weight.numel() for weight in module.parameters() if weight.dim() == 2)

    mixture, (routed,) = workloads.mixture(HERE)
    dense, (tokens,) = workloads.dense(HERE)
    assert products(dense) == 2 * products(mixture.experts[0])
    assert len(mixture.experts) == 8
    assert routed.shape == tokens.shape


@pytest.mark.torch
@pytest.mark.usefixtures("quick")
def test_a_tree_is_folded_from_its_leaves_to_its_root() -> None:
    import torch

    from experiments import workloads

    model, stream = workloads.trees(HERE)
    weight, bias = model.cell.gates.weight, model.cell.gates.bias

    def folded(tree: Any) -> tuple[Any, Any]:
        if isinstance(tree, torch.Tensor):
            return tree, torch.zeros(1, 32)
        (h1, c1), (h2, c2) = folded(tree[0]), folded(tree[1])
        i, f1, f2, o, u = (torch.cat((h1, h2), 1) @ weight.T + bias).split(32, 1)
        c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f1) * c1 + torch.sigmoid(f2) * c2
        return torch.sigmoid(o) * torch.tanh(c), c

    sides = prepared("recursive.trees-d")
    with torch.no_grad():
        expected = [folded(tree) for tree in stream]
    torch.testing.assert_close(sides.eager(), expected)
    assert compared(sides).right
    assert len(sides.inputs) == sum(str(tree).count("tensor") for tree in stream)


@pytest.mark.torch
def test_there_are_64_trees_of_many_forms_at_full_scale() -> None:
    import torch

    from experiments import workloads

    def form(tree: Any) -> Any:
        return 1 if isinstance(tree, torch.Tensor) else tuple(form(part) for part in tree)

    model, stream = workloads.trees(Here(scale="full", device="cpu"))
    forms = [str(form(tree)) for tree in stream]
    assert (len(forms), model.cell.gates.out_features) == (64, 5 * 256)
    assert len(set(forms)) > 8, "fewer forms than Dynamo compiles before it gives up"
    assert {text.count("1") for text in forms} <= set(range(4, 13))


@pytest.mark.torch
@pytest.mark.usefixtures("quick")
def test_three_gelus_are_the_same_maths_and_one_is_opaque() -> None:
    import torch

    seen: dict[str, set[str]] = {}
    for kind in ("opaque", "same-maths"):
        sides = prepared(f"operator.{kind}-d")
        assert compared(sides).right
        names: set[str] = set()

        def look(graph: Any, _inputs: Any, names: set[str] = names) -> Any:
            names |= {str(node.target) for node in graph.graph.nodes}
            return graph.forward

        torch._dynamo.reset()
        graph = next(
            cell.cell_contents for cell in sides.eager.__closure__ if isinstance(cell.cell_contents, torch.nn.Module)
        )
        torch._dynamo.optimize(look, nopython=True)(graph)(*sides.inputs)
        seen[kind] = names
    assert any("scaled_gelu" in name for name in seen["opaque"])
    assert not any("scaled_gelu" in name for name in seen["same-maths"])
    with pytest.raises(Unavailable, match="needs a GPU"):
        prepared("operator.triton-d")


@pytest.mark.torch
def test_the_operator_by_hand_refuses_what_it_would_compute_wrongly() -> None:
    import torch

    from experiments import opaque

    for numbers in (torch.randn(4).double(), torch.randn(4, 4).T):
        with pytest.raises(ValueError, match="takes contiguous fp32"):
            opaque.scaled_gelu()(numbers, 1.5)


@pytest.mark.torch
def test_without_a_compiler_the_operator_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    from experiments import opaque

    monkeypatch.setenv("CXX", "no-such-compiler --fast")
    opaque.launcher.cache_clear()
    with pytest.raises(Unavailable, match="needs a C\\+\\+ compiler, and there is no no-such-compiler"):
        prepared("operator.opaque-d")
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(RuntimeError, match="false failed with 1"):
        prepared("operator.opaque-d")


@pytest.mark.torch
@pytest.mark.every_lane
def test_the_lanes_own_nvrtc_compiles_the_operator_for_an_h200() -> None:
    from experiments import opaque

    try:
        found = opaque.nvrtc()
    except Unavailable as error:
        pytest.skip(str(error))
    assert "libnvrtc.so" in found.name
    code = opaque.cubin(opaque.CUDA, "sm_90")
    assert code.startswith(b"\x7fELF")
    assert opaque.NAME.encode() in code
    with pytest.raises(RuntimeError, match=r"nvrtcCompileProgram: NVRTC_ERROR_COMPILATION .*undefined"):
        opaque.cubin(opaque.CUDA.replace("erff", "no_such_function"), "sm_90")
    with pytest.raises(RuntimeError, match=r"nvrtcCompileProgram: NVRTC_ERROR_INVALID_OPTION"):
        opaque.cubin(opaque.CUDA, "sm_1")


@pytest.mark.torch
@pytest.mark.every_lane
def test_routing_by_indexing_is_one_graph_in_new_versions_alone() -> None:
    import torch

    breaks = observed("moe-capture.moe")["breaks"]
    old = torch.__version__.startswith(("2.4.", "2.5."))
    assert breaks.holds == old
    assert ("nonzero" in str(breaks.evidence["error with fullgraph=True"])) == old
    assert breaks.evidence["graphs by default"] not in {None, 0}


@pytest.mark.torch
@pytest.mark.every_lane
def test_inductor_generates_code_for_mps_in_new_versions_alone() -> None:
    import torch

    mps = observed("backends.gelu")["mps"]
    assert mps.holds == (not torch.__version__.startswith(("2.4.", "2.5.")))
    assert (mps.evidence["mps"] is not None) == mps.holds
    assert mps.evidence["xpu"] is not None
    assert mps.evidence["cpu (control)"] is not None


@pytest.mark.torch
@pytest.mark.every_lane
def test_nothing_is_compiled_by_default_and_the_profiler_reports_what_is() -> None:
    default = observed("defaults.gelu")["compiles-by-default"]
    assert not default.holds
    assert default.evidence["graphs of the same, compiled by hand (control)"] == 1
    report = observed("dynamo-profiler.gelu")["yields-a-report"]
    assert report.holds
    assert str(report.evidence["report"]).startswith("1 graphs")
    assert str(report.evidence["report of a model that is not compiled (control)"]).startswith("0 graphs")


@pytest.mark.torch
def test_a_count_that_stays_zero_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    from reportkit.bench import counters

    monkeypatch.setattr(counters, "unique_graphs", lambda: 0)
    with pytest.raises(RuntimeError, match="the count says nothing"):
        observed("defaults.gelu")
    with pytest.raises(RuntimeError, match="the dense layer is 0 graphs"):
        observed("moe-capture.moe")
