"""Notebooks: the same code in both languages, run on what counts, honest where there is nothing, and light as pages."""

from __future__ import annotations

import ast
import gzip
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reportkit.site import notebooks
from tests.casefiles import run_files
from tests.site.conftest import HOSTILE, ROOT, report
from tests.site.test_exports import edition

if TYPE_CHECKING:
    from tests.site.conftest import Built, MakeProject

NAMES = sorted(path.name for path in (ROOT / "docs" / "en" / "notebooks").glob("*.py"))
EVERY = pytest.mark.parametrize("name", NAMES)
NOTHING = {"claim.py": "Nothing to redo yet", "noise.py": "Nothing to show yet"}
HEAVIEST = 250_000
OUTPUT = re.compile(r'class="[^"]*jp-OutputArea-output[^"]*".*?</div>', re.DOTALL)


def source(language: str, name: str) -> str:
    return (ROOT / "docs" / language / "notebooks" / name).read_text(encoding="utf-8")


def page(built: Built, name: str, language: str = "en") -> str:
    above = "" if language == "en" else f"{language}/"
    return built.page(f"{above}notebooks/{Path(name).stem}.html")


class _Wordless(ast.NodeTransformer):
    """Takes every text out of the code: those are what a language has of its own."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        fields = [self.visit(part) for part in node.values if isinstance(part, ast.FormattedValue)]
        return ast.Tuple(sorted(fields, key=ast.dump))


@EVERY
def test_both_languages_run_the_same_code(name: str) -> None:
    codes = [ast.dump(_Wordless().visit(ast.parse(source(language, name)))) for language in ("en", "zh")]
    assert codes[0] == codes[1]
    cells = [re.findall(r"^# %%.*$", source(language, name), re.MULTILINE) for language in ("en", "zh")]
    assert cells[0] == cells[1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Jupyter's libraries warn of each other.
@EVERY
def test_a_notebook_agrees_with_the_judge_and_gives_the_same_page_twice(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mkdocs.structure.toc import AnchorLink
    from mkdocs_jupyter.convert import nb2html

    files = [file for lane in ("2.5", "2.15") for file in run_files(lane=lane, only="table")]
    made = edition(tmp_path / "project", files)
    monkeypatch.setenv("PYTHONPATH", os.fspath(ROOT))
    seen = []
    for time in ("first", "second"):
        with notebooks.kernels(made, tmp_path / time):
            html = nb2html(
                os.fspath(ROOT / "docs" / "en" / "notebooks" / name),
                execute=True,
                kernel_name="python3",
                allow_errors=False,
                no_prompt=True,
                remove_tag_config={"remove_input_tags": ["remove_input"]},
            )
        seen.append(notebooks.page(html, [AnchorLink("a title", "", 1)]))
    assert seen[0] == seen[1]
    assert os.fspath(tmp_path) not in seen[0]
    assert {"claim.py": "as the judge says", "noise.py": "60 pairs, by the gpu clock"}[name] in seen[0]
    assert "draw_in_notebooks" not in seen[0]
    assert os.environ.get("REPORTKIT_EXPORTS") is None


@pytest.mark.slow
@EVERY
def test_a_page_is_light_and_asks_no_other_host(name: str, full: Built) -> None:
    assert (full.code, full.errors) == (0, "")
    for language in ("en", "zh"):
        html = page(full, name, language)
        assert len(gzip.compress(html.encode())) < HEAVIEST
        assert "cdnjs" not in html
        assert "jsdelivr" not in html
        assert os.fspath(full.project) not in html
        inside = html[html.index('class="jupyter-wrapper"') : html.index("</article>")]
        assert "<script" not in inside
        assert "<style" not in inside
        steps = re.findall(r'<h[1-6] id="(step-\d+)"', html)
        assert steps == [f"step-{place}" for place in range(len(steps))]
        assert set(re.findall(r'href="#(step-\d+)"', html)) <= set(steps)
        assert len(steps) > 3
        assert (full.site / ("" if language == "en" else language) / "notebooks" / name).read_text(
            encoding="utf-8"
        ) == source(language, name)
    outputs = "".join(OUTPUT.findall(page(full, name)))
    assert NOTHING[name] not in outputs
    assert "as the judge says" in outputs or "pairs, by the gpu clock" in outputs


@pytest.mark.slow
@EVERY
@pytest.mark.parametrize("state", ["empty", "smoke", "attacked"])
def test_with_nothing_that_counts_it_says_so_and_stops(state: str, name: str, request: pytest.FixtureRequest) -> None:
    built: Built = request.getfixturevalue(state)
    html = page(built, name)
    outputs = OUTPUT.findall(html)
    assert len(outputs) == 1
    assert NOTHING[name] in outputs[0]
    assert HOSTILE[:20] not in html


@pytest.mark.slow
def test_a_failing_cell_fails_the_build_in_one_line(make_project: MakeProject) -> None:
    project = make_project("failing")
    notebook = project / "docs" / "en" / "notebooks" / NAMES[0]
    notebook.write_text(source("en", NAMES[0]) + "\n# %%\nraise ValueError('no such luck')\n", encoding="utf-8")
    # It would not be run: there is nothing measured, and the cells below that are left out.
    text = notebook.read_text(encoding="utf-8").replace("get_ipython().input_transformers_cleanup", "[]")
    notebook.write_text(text, encoding="utf-8")
    (project / "site").mkdir()
    (project / "site" / "old").write_text("old", encoding="utf-8")

    built = report(project)

    assert built.code == 1
    first, second = built.errors.splitlines()
    assert first.startswith(f"report: docs/en/notebooks/{NAMES[0]}: a cell failed: ")
    assert second == "report: the site was not built; an earlier one is as it was"
    assert [path.name for path in built.site.iterdir()] == ["old"]
    assert not list(project.glob(".site-*"))
