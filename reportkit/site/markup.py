"""HTML as values. Text becomes HTML here and nowhere else, so nothing that a stranger wrote is markup.

`Html` is a type of its own: what takes `Html` can't be given text by mistake, the type checker sees
to it. `escape` is the only way from one to the other for text of case files. It leaves no character
that HTML, Markdown or Jinja could read as anything but itself.
"""

from __future__ import annotations

import functools
import posixpath
import re
import unicodedata
from html import unescape
from typing import NewType

from pygments import lex
from pygments.lexers.python import PythonLexer
from pygments.token import Token

Html = NewType("Html", str)

NOTHING = Html("")
LONGEST = 2000
"""Characters of one text shown; the rest is in the raw file, which every page links to."""

# Hidden and direction-changing characters, with which a text can look like another one.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SAFE_IN_QUOTES = frozenset("/:;()%#=+-_")
_COLOURED = (
    (Token.Keyword, "k"),
    (Token.Operator.Word, "k"),
    (Token.Literal.String, "s"),
    (Token.Literal.Number, "m"),
    (Token.Comment, "c"),
    (Token.Name.Function, "nf"),
    (Token.Name.Class, "nc"),
)
"""Kinds of tokens, and the theme's classes for them."""
_VOID = frozenset({"br", "img", "circle", "line", "rect", "link", "meta"})


def escape(text: object, most: int = LONGEST) -> Html:
    """Return any text as HTML that shows exactly it, inert in HTML, Markdown and Jinja alike.

    Every ASCII character but letters, digits, space, full stop and comma becomes a character
    reference; an invisible one becomes U+FFFD, so that it is seen. Longer than `most`: cut, and said.
    """
    text = str(text)
    if len(text) > most:
        text = f"{text[:most]} \u2026"
    return Html("".join(_shown(character) for character in text))


def _shown(character: str) -> str:
    if character in " .,":
        return character
    if character in "\n\t":
        return f"&#{ord(character)};"
    if unicodedata.category(character) in _INVISIBLE:
        return "\ufffd"
    if character.isascii() and not character.isalnum():
        return f"&#{ord(character)};"
    return character


def prose(text: str) -> Html:
    """Return a sentence of our own, from a label or a claim's text, with its `code` set as code."""
    parts = text.split("`")
    return Html(
        "".join(
            f"<code>{escape(part)}</code>" if odd % 2 and len(parts) % 2 else escape(part)
            for odd, part in enumerate(parts)
        )
    )


def fill(text: str, **details: object) -> Html:
    """Return a sentence of our own with its placeholders filled by texts that may be anyone's: shown as they are."""
    return put(text, **{name: escape(detail) for name, detail in details.items()})


def put(text: str, **details: Html) -> Html:
    """Return a sentence of our own with its placeholders filled by what is HTML already."""
    found = {escape(name): detail for name, detail in details.items()}
    return Html(re.sub(r"&#123;(.+?)&#125;", lambda match: found[Html(match[1])], prose(text)))


def plain(text: str) -> str:
    """Return a sentence of our own without the marks of code, for titles and text alternatives."""
    return text.replace("`", "")


def unmarked(html: Html) -> str:
    """Return what HTML of ours says, as plain text on one line."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", html))).strip()


@functools.cache
def python(source: str) -> Html:
    """Return Python source as a highlighted block: keywords, texts, numbers, comments and what is defined."""
    spans = []
    for kind, text in lex(source, PythonLexer(stripnl=False, ensurenl=False)):
        # The theme gives everything else the colour of plain code, and a page has thousands of tokens.
        class_ = next((short for whole, short in _COLOURED if kind in whole), None)
        shown = escape(text, len(text))
        spans.append(element("span", shown, class_=class_) if class_ else shown)
    return element("div", element("pre", element("code", *spans)), class_="highlight")


def join(parts: list[Html] | tuple[Html, ...], between: str = "") -> Html:
    """Return the parts one after another."""
    return Html(between.join(parts))


def element(name: str, *children: Html, **attributes: str | float | bool | None) -> Html:
    """Return an element. An attribute's underscores are hyphens, one at the end is dropped (`class_`).

    An attribute of None or False is left out, one of True has no value.
    """
    written = "".join(
        f" {_attribute(key)}" if value is True else f' {_attribute(key)}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Html(f"<{name}{written}/>")
    return Html(f"<{name}{written}>{''.join(children)}</{name}>")


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: object) -> str:
    """Return an attribute's value: as `escape` would, but readable where that is safe in quotes."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return "".join(character if character in _SAFE_IN_QUOTES else _shown(character) for character in str(value))


def commanded(command: str) -> Html:
    """Return a command as a block that can be copied."""
    return element("pre", element("code", escape(command)), class_="rk-command")


def scroll(table: Html) -> Html:
    """Return a table that scrolls inside itself where the screen is narrower."""
    return element("div", table, class_="rk-scroll", tabindex="0")


def link(text: Html, at: str, to: str, **attributes: str) -> Html:
    """Return a link from the page `at` to `to`, both paths below the site's root, so that it works from disk."""
    return element("a", text, href=relative(at, to), **attributes)


def relative(at: str, to: str) -> str:
    """Return the path from the page `at` to `to`; a Markdown page's ending becomes that of its HTML."""
    path = re.split(r"[?#]", to, maxsplit=1)[0]
    rest = to[len(path) :]
    path = re.sub(r"\.md$", ".html", path)
    return posixpath.relpath(path, posixpath.dirname(at) or ".") + rest
