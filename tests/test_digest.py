"""A digest changes with the code that a case runs, and with nothing else."""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import re
import shutil
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from experiments import ARTICLE
from reportkit import digest
from reportkit.plan import Article, PlanError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROJECT = Path(__file__).parent.parent

WORKLOADS = '''
"""Models."""

import torch
from torch import nn

SEED = 1337
SIZES = {"full": 64, "smoke": 2}


def small(here):
    """A small one."""
    seeded()
    return nn.Linear(SIZES[here.scale], 4), {}


def large(here):
    model = Tall(4096)  # Large.
    return model, {"x": torch.ones(2)}


class Tall(nn.Module):
    """Tall."""

    depth: int = 3


def seeded():
    torch.manual_seed(SEED)


def double(model):
    return model.double()
'''

SECTION = '''
"""Section 1."""

from __future__ import annotations

from sample.shared import clean as cleaned
from reportkit.claims import TRUE, Claim, Fact, Where, at_most
from reportkit.plan import Case, Experiment, Section

TOLERANCE = 1e-3
CLAIMS = (Claim(id="one", quantity=Fact(Where("e", {}), "f"), bound=TRUE, on="any"),)


def prepare(case, here):
    """Prepare."""
    from sample import workloads

    model, inputs = getattr(workloads, case.workload)(here)
    process = f"{model!r:>{len(inputs)}} and {TOLERANCE}"  # a comment
    twin = workloads.double(model)
    return lambda: cleaned(twin, process)


EXPERIMENT = Experiment(
    id="e",
    kind="fact",
    cases=tuple(
        Case(experiment="e", axes={"workload": process}, workload=process, cost={"full": 1, "smoke": 1})
        for process in ("small", "large")
    ),
    prepare=prepare,
)
SECTION = Section(id="s", number=1, claims=CLAIMS, experiments=(EXPERIMENT,))
'''

SHARED = """
import math

LIMIT = 3
LOG = []


def clean(model, text):
    return model, text[:LIMIT]


def unused():
    return math.pi
"""

INIT = """
from sample import one
from reportkit.plan import Article

ARTICLE = Article(id="a", lane="2.5", machines=(), sections=(one.SECTION,))
"""

Sample = dict[str, str]


@pytest.fixture
def sample() -> Sample:
    return {"__init__.py": INIT, "one.py": SECTION, "shared.py": SHARED, "workloads.py": WORKLOADS}


@pytest.fixture
def take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Sample], dict[str, str]]]:
    """Return a function that writes an article's sources, imports it and returns its digests."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def forget() -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] == "sample"]:
            del sys.modules[name]
        importlib.invalidate_caches()

    def written(sources: Sample) -> dict[str, str]:
        forget()
        for name, text in sources.items():
            (tmp_path / "sample" / name).parent.mkdir(exist_ok=True)
            (tmp_path / "sample" / name).write_text(text, encoding="utf-8")
        article: Article = importlib.import_module("sample").ARTICLE
        return digest.digests(article)

    yield written
    forget()


BOTH = {"e.small", "e.large"}

CHANGES: dict[str, tuple[str, str, str, set[str]]] = {
    # name: file, what is replaced, by what, whose digests change
    "a comment": ("one.py", "# a comment", "# another", set()),
    "a docstring": ("workloads.py", '"""A small one."""', '"""Another."""', set()),
    "a docstring gone": ("workloads.py", '    """Tall."""\n', "", set()),
    "a module's docstring": ("one.py", '"""Section 1."""', '"""The first."""', set()),
    "blank lines": ("workloads.py", "\n\n\n", "\n\n\n\n\n", set()),
    "line breaks": (
        "workloads.py",
        "nn.Linear(SIZES[here.scale], 4)",
        "nn.Linear(\n    SIZES[here.scale],\n    4,\n)",
        set(),
    ),
    "quotes": ("workloads.py", '"full"', "'full'", set()),
    "a claim": ("one.py", "bound=TRUE", "bound=Claim and TRUE", set()),
    "a cost": ("one.py", '"full": 1', '"full": 100', set()),
    "an annotation": ("one.py", "def prepare(case, here)", "def prepare(case: Case, here: object) -> object", set()),
    "code not reached": ("shared.py", "math.pi", "math.e", set()),
    "prepare": ("one.py", "twin = workloads", "twin = 1 and workloads", BOTH),
    "an f-string": ("one.py", "and {TOLERANCE}", "and {TOLERANCE!r}", BOTH),
    "a constant that prepare reads": ("one.py", "1e-3", "1e-4", BOTH),
    "one workload": ("workloads.py", "model = Tall(4096)", "model = Tall(2048)", {"e.large"}),
    "a class of one workload": ("workloads.py", "depth: int = 3", "depth: int = 4", {"e.large"}),
    "a function of one workload": (
        "workloads.py",
        "torch.manual_seed(SEED)",
        "torch.manual_seed(SEED + 1)",
        {"e.small"},
    ),
    "a constant two steps away": ("workloads.py", "1337", "1338", {"e.small"}),
    "where a name comes from": ("workloads.py", "from torch import nn", "from torch import fx as nn", BOTH),
    "a shared function of workloads": ("workloads.py", "model.double()", "model.double().eval()", BOTH),
    "another module": ("shared.py", "LIMIT = 3", "LIMIT = 4", BOTH),
    "what runs on import": (
        "workloads.py",
        "SEED = 1337\n",
        "SEED = 1337\ntorch.set_default_dtype(torch.half)\n",
        BOTH,
    ),
    "a later assignment": ("workloads.py", "SIZES = {", "SIZES = {}\nSIZES = {", {"e.small"}),
    "a text that looks like a comment": ("one.py", "} and {", "} # and {", BOTH),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_a_digest(change: str, sample: Sample, take: Callable[[Sample], dict[str, str]]) -> None:
    file, before, after, changed = CHANGES[change]
    was = take(sample)
    assert before in sample[file]
    now = take({**sample, file: sample[file].replace(before, after)})
    assert {name for name in was if was[name] != now[name]} == changed


IMPORTS = {
    "from the package": ("from sample import shared", "shared.clean"),
    "a module by its full name": ("import sample.shared", "sample.shared.clean"),
    "a module by another name": ("import sample.shared as other", "other.clean"),
    "by a name known beforehand": ("from sample import shared", 'getattr(shared, "clean")'),
    "by a computed name": ("from sample import shared", "getattr(shared, str('clean'))"),
    "handed around": ("from sample import shared", "vars(shared)['clean']"),
    "relative": ("from .shared import clean", "clean"),
    "in a condition": ("try:\n    from sample.shared import clean\nexcept ImportError:\n    clean = None", "clean"),
}


@pytest.mark.parametrize("how", IMPORTS)
@pytest.mark.parametrize("inside", [True, False], ids=["in the function", "in the module"])
def test_every_way_to_import_is_followed(
    how: str,
    inside: bool,  # noqa: FBT001 -- a parameter of the test
    sample: Sample,
    take: Callable[[Sample], dict[str, str]],
) -> None:
    line, use = IMPORTS[how]
    text = sample["one.py"].replace("cleaned(twin", f"{use}(twin")
    if inside:
        anchor = "    from sample import workloads\n"
        text = text.replace(anchor, anchor + textwrap.indent(line, "    ") + "\n")
        text = text.replace("from sample.shared import clean as cleaned\n", "")
    else:
        text = text.replace("from sample.shared import clean as cleaned", line)
    was = take({**sample, "one.py": text})
    now = take({**sample, "one.py": text, "shared.py": SHARED.replace("LIMIT = 3", "LIMIT = 4")})
    assert all(was[name] != now[name] for name in BOTH)


def test_a_workload_that_does_not_exist_is_one_clear_message(
    sample: Sample, take: Callable[[Sample], dict[str, str]]
) -> None:
    with pytest.raises(PlanError, match=r"case 'e.small': unknown function of sample.workloads 'small'; did you mean"):
        take({**sample, "workloads.py": WORKLOADS.replace("def small(", "def smaller(")})


def test_a_source_that_is_no_python_is_one_clear_message(
    sample: Sample, take: Callable[[Sample], dict[str, str]]
) -> None:
    with pytest.raises(PlanError, match=r"workloads.py can't be read as Python"):
        take({**sample, "workloads.py": "def small(:"})


def test_prepare_must_be_a_function_of_its_module(sample: Sample, take: Callable[[Sample], dict[str, str]]) -> None:
    with pytest.raises(PlanError, match="prepare must be a function of its module"):
        take({**sample, "one.py": sample["one.py"].replace("prepare=prepare", "prepare=lambda case, here: None")})


@pytest.mark.parametrize(
    "field",
    [{"settings": {"a": 1}}, {"cache": "cold"}, {"steady": False}, {"axes": {"workload": "resnet50", "more": 1}}],
)
def test_what_the_case_itself_runs_counts_and_its_cost_does_not(field: dict[str, Any]) -> None:
    case = next(case for case in ARTICLE.experiment("table").cases if case.cache == "warm")
    assert digest.digest(ARTICLE, case) != digest.digest(ARTICLE, replace(case, **field))
    assert digest.digest(ARTICLE, case) == digest.digest(ARTICLE, replace(case, cost={"full": 9, "smoke": 9}))


def test_every_case_of_the_article_has_one_without_importing_torch() -> None:
    started = time.monotonic()
    found = digest.digests(ARTICLE)
    assert time.monotonic() - started < 30  # Not a speed test: only that nothing imports torch on the way.
    assert set(found) == {case.name for experiment in ARTICLE.experiments for case in experiment.cases}
    assert len(set(found.values())) == len(found)
    assert all(re.fullmatch(r"[0-9a-f]{16}", value) for value in found.values())
    case = ARTICLE.experiments[0].cases[0]
    assert digest.digest(ARTICLE, case) == found[case.name]


CODE = r'''
import contextlib

@contextlib.contextmanager
def f(a, /, b: int = 1, *c, d=0x10, **e) -> None:
    """Gone."""
    x = f"{a!r:>{b}.{d}f} {{}} " "joined" f'{a}' f"" u"\u00e9" "\U0001fae8"
    y = f"{e['k']}{'nested'!s}", rb"\x00", 1j, 1e308, 10**30, ..., not None, -0.0
    match y:
        case {"k": [1, *rest], **others} if (z := len(rest)) > 1:
            pass
        case C(v=3) | None:
            return lambda q: [i async for i in q if i]
    with open(x) as s, s as t:
        "no docstring, does nothing either"
    try:
        del x[1:2, ...], y
    except* (ValueError, TypeError) as group:
        raise group from None
    else:
        yield
'''


def _dumped() -> str:
    return digest._dump(ast.parse(CODE))


def test_the_dump_of_tricky_code_is_what_it_always_was() -> None:
    assert hashlib.sha256(_dumped().encode()).hexdigest()[:16] == "a66a123ea2825a0e"


STUB = """
import json, sys, types
stub = types.ModuleType("msgspec")  # The other interpreter needs no package for a digest.
stub.Struct = type("Struct", (), {"__init_subclass__": classmethod(lambda cls, **options: None)})
stub.Meta = lambda **options: None
stub.DecodeError = ValueError
sys.modules["msgspec"] = stub
sys.path.insert(0, sys.argv[1])
from experiments import ARTICLE
from reportkit import digest
print(json.dumps(digest.digests(ARTICLE)))
"""


def _others() -> list[str]:
    """Return other interpreters that the project supports, wherever they are usually kept."""
    found: dict[str, str] = {}
    for minor in (11, 12, 13, 14):
        if minor == sys.version_info.minor:
            continue
        kept = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3.{minor}"))
        kept += sorted(Path.home().glob(f".local/share/uv/python/cpython-3.{minor}*/bin/python3.{minor}"))
        on_path = shutil.which(f"python3.{minor}")
        if on_path or kept:
            found[f"3.{minor}"] = str(kept[-1]) if kept else str(on_path)
    return list(found.values())


def test_digests_are_equal_on_every_python() -> None:
    mine = digest.digests(ARTICLE)
    compared = 0
    for python in _others():
        answer = subprocess.run([python, "-I", "-c", STUB, str(PROJECT)], capture_output=True, text=True, check=False)
        if answer.returncode == 127:
            continue  # A version manager's stand-in, without that version behind it.
        assert answer.returncode == 0, answer.stderr
        assert json.loads(answer.stdout) == mine, python
        compared += 1
    if not compared:
        pytest.skip(f"only Python {sys.version.split()[0]} was found; nothing to compare with")


def test_code_is_the_source_that_digests_are_of(sample: Sample, take: Callable[[Sample], dict[str, str]]) -> None:
    take(sample)
    article: Article = importlib.import_module("sample").ARTICLE
    cases = {case.workload: case for case in article.experiments[0].cases}
    found = digest.codes(article, {name: [case] for name, case in cases.items()} | {"both": cases.values()})
    named = {name: [one.name for one in its] for name, its in found.items()}

    # What cases start from is first; of the rest, neither imports nor what nobody reaches.
    assert named["small"] == ["prepare", "small", "TOLERANCE", "LIMIT", "clean", "SEED", "SIZES", "seeded", "double"]
    assert named["large"] == ["prepare", "large", "TOLERANCE", "LIMIT", "clean", "Tall", "double"]
    assert named["both"][:3] == ["prepare", "small", "large"]
    assert set(named["both"]) == {*named["small"], *named["large"]}
    assert [one.root for one in found["small"]] == [True, True] + [False] * 7
    for one in found["both"]:
        lines = sample[one.path.removeprefix("sample/")].splitlines()
        assert lines[one.line - 1 : one.line - 1 + one.text.count("\n") + 1] == one.text.splitlines()


def test_code_begins_with_its_decorators(sample: Sample, take: Callable[[Sample], dict[str, str]]) -> None:
    take(sample | {"shared.py": sample["shared.py"].replace("def clean", "@staticmethod\ndef clean")})
    article: Article = importlib.import_module("sample").ARTICLE
    [code] = [one for one in digest.codes(article, {"": article.experiments[0].cases})[""] if one.name == "clean"]
    assert code.text.startswith("@staticmethod\ndef clean")
