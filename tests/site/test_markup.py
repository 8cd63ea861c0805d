"""Text of strangers is text: in HTML, in Markdown and in Jinja."""

from __future__ import annotations

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment
from markdown import Markdown  # type: ignore[import-untyped]

from reportkit.site import markup
from reportkit.site.charts import script_json
from reportkit.site.markup import element, escape, link, plain, prose, relative


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words, 1.5 GB.", "plain words, 1.5 GB."),
        ("{{ x }}", "&#123;&#123; x &#125;&#125;"),
        ("<b>*a*</b>", "&#60;b&#62;&#42;a&#42;&#60;&#47;b&#62;"),
        ("a_b `c`", "a&#95;b &#96;c&#96;"),
        ("zh \u7f16\u8bd1\uff0c\u7f13\u5b58", "zh \u7f16\u8bd1\uff0c\u7f13\u5b58"),
        ("two\nlines", "two&#10;lines"),
        ("\u202egnp.exe\x00", "\ufffdgnp.exe\ufffd"),
        ("x" * 2001, "x" * 2000 + " \u2026"),
    ],
)
def test_escape(text: str, shown: str) -> None:
    assert escape(text) == shown


@given(st.text(alphabet=st.characters(exclude_categories=("C", "Zl", "Zp"))))
def test_escaped_text_is_read_back_as_it_was_by_html_markdown_and_jinja(text: str) -> None:
    shown = escape(text)
    assert html.unescape(shown) == text
    assert Environment(autoescape=True).from_string(shown).render() == shown
    block = f"<div>{shown}</div>"
    assert Markdown(extensions=["attr_list", "md_in_html", "tables", "footnotes"]).convert(block) == block


@given(st.text(max_size=40))
def test_an_attribute_never_ends_early(text: str) -> None:
    made = element("a", title=text)
    value = made.removeprefix('<a title="').removesuffix('"></a>')
    assert not set(value) & set("\"'<>{}`")


def test_prose_sets_code_and_escapes_the_rest() -> None:
    assert prose("run `a<b>` & go") == "run <code>a&#60;b&#62;</code> &#38; go"
    assert prose("an odd ` mark") == "an odd  mark"
    assert plain("run `it`") == "run it"


@pytest.mark.parametrize(
    ("at", "to", "path"),
    [
        ("index.md", "claims/a.md", "claims/a.html"),
        ("claims/a.md", "ledger.md#damaged", "../ledger.html#damaged"),
        ("claims/a.md", "../data/results/x.json", "../../data/results/x.json"),
        ("article/a.md", "article/b.md", "b.html"),
    ],
)
def test_links_are_relative(at: str, to: str, path: str) -> None:
    assert relative(at, to) == path
    assert link(escape("x"), at, to) == f'<a href="{path}">x</a>'


def test_json_in_a_script_can_not_end_it() -> None:
    assert script_json({"a": "</script><!--&"}) == '{"a":"\\u003c/script\\u003e\\u003c!--\\u0026"}'


def test_what_fills_a_sentence_is_text() -> None:
    made = markup.fill("on `{gpu}`, {best_name}", gpu="`a` {best_name}", best_name="<b>")
    assert made == ("on <code>&#96;a&#96; &#123;best&#95;name&#125;</code>, &#60;b&#62;")
