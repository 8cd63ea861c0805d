"""The words of the site in one language: labels of this package, and texts of the article's claims.

Both are data files, and both are checked as a whole before a page is written: a key that one
language lacks, a placeholder that differs or a claim without its text is one message naming the file
and the key.
"""

from __future__ import annotations

import dataclasses
import re
import string
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from reportkit.claims import SETTING_AXIS, Each
from reportkit.judge import REASONS, Criteria
from reportkit.plan import PlanError

if TYPE_CHECKING:
    from reportkit.claims import Claim
    from reportkit.plan import Article

LANGUAGES = ("en", "zh")
"""The first is at the site's root, another below its own name."""

_HERE = Path(__file__).parent
_FIELDS = ("statement", "reading", "source")
_CRITERIA = "criteria."
_OPTIONAL = ("printed", "taken")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimText:
    """A claim in words."""

    statement: str
    reading: str
    """What loose words were read as."""
    source: str
    """The place in the article."""
    printed: str | None = None
    """A figure as the article's copy has it, where that is damaged; with `taken`."""
    taken: str | None = None
    """What the damaged figure is taken for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Every word of the site in one language."""

    language: str
    labels: Mapping[str, str]
    """By dotted key: `outcome.supported`."""
    claims: Mapping[str, ClaimText]
    sections: Mapping[str, str]
    names: Mapping[str, Mapping[str, str]]
    """What a value of an axis is called, by axis and value."""

    def __call__(self, key: str, **details: object) -> str:
        """Return the label of that key, its placeholders filled.

        Raises:
            PlanError: there is none, or a placeholder stays empty.
        """
        try:
            return self.labels[key].format(**details)
        except KeyError as error:
            message = f"reportkit/site/labels.{self.language}.toml: nothing for {error} (asked for as {key!r})"
            raise PlanError(message) from error

    @property
    def above(self) -> str:
        """What leads from the language's root to the site's."""
        return "" if self.language == LANGUAGES[0] else "../"

    @property
    def between(self) -> str:
        """What stands between two sentences: Chinese full stops bring their own space."""
        return "" if self.language == "zh" else " "

    def name(self, axis: str, value: object) -> str:
        """Return what a value of an axis is called, or the value where it has no name of its own."""
        return self.names.get(axis, {}).get(str(value), str(value))

    def sentence(self, words: str) -> str:
        """Return words as they stand at the beginning of a line: in English with a capital."""
        return words[:1].upper() + words[1:] if self.language == "en" else words

    def called(self, label: str) -> str:
        """Return what a part of a claim is called, whichever axis its label is a value of."""
        return next((names[label] for names in self.names.values() if label in names), label)


def load_texts(project: Path, article: Article) -> dict[str, Texts]:
    """Return the words of every language.

    Raises:
        PlanError: a file can't be read, or a key is missing; the message has the file and the key.
    """
    labels = {language: _flat(_read(_HERE / f"labels.{language}.toml", _HERE.parents[1])) for language in LANGUAGES}
    for language in LANGUAGES:
        _check_labels(language, labels)
    return {
        language: _texts(_read(project / "experiments" / f"claims.{language}.toml", project), article, language, labels)
        for language in LANGUAGES
    }


def _texts(data: Mapping[str, Any], article: Article, language: str, labels: Mapping[str, Mapping[str, str]]) -> Texts:
    file = f"experiments/claims.{language}.toml"
    sections = {section.id: _string(data, file, "sections", section.id) for section in article.sections}
    claims = {claim.id: _claim_text(data, file, claim.id) for claim in article.claims}
    strange = sorted(set(data.get("claims", {})) - set(claims))
    if strange:
        message = f"{file}: claims.{strange[0]} is the text of no claim in experiments/; remove it or declare the claim"
        raise PlanError(message)
    names: dict[str, Mapping[str, str]] = {
        axis: {value: _string(data, file, "names", axis, value) for value in values}
        for axis, values in data.get("names", {}).items()
    }
    for claim in article.claims:
        for axis, value in _named(claim):
            _string(data, file, "names", axis, value)
    for family in article.families:
        _string(data, file, "names", "family", family)
    return Texts(
        language=language,
        labels=MappingProxyType(dict(labels[language])),
        claims=MappingProxyType(claims),
        sections=MappingProxyType(sections),
        names=MappingProxyType(names),
    )


def _named(claim: Claim) -> set[tuple[str, str]]:
    """Return the axis values that pages about a claim must call by name: its workloads, settings and labels."""
    named = {(SETTING_AXIS, setting) for setting in claim.settings}
    for where in claim.quantity.cases():
        for axis in ("workload", SETTING_AXIS):
            value = where.axes.get(axis)
            if value is not None:
                named |= {(axis, str(one)) for one in (value if isinstance(value, tuple) else (value,))}
    if isinstance(claim.quantity, Each):
        for label, part in claim.quantity.parts.items():
            named |= {(axis, label) for where in part.cases() for axis, value in where.axes.items() if value == label}
    return named


def _claim_text(data: Mapping[str, Any], file: str, claim: str) -> ClaimText:
    found = {field: _string(data, file, "claims", claim, field) for field in _FIELDS}
    extra = data["claims"][claim].keys() - set(_FIELDS)
    unknown = sorted(extra - set(_OPTIONAL))
    if unknown:
        message = f"{file}: claims.{claim}.{unknown[0]} is no field of a claim's text; it has {', '.join(_FIELDS)}"
        raise PlanError(message)
    found |= {field: _string(data, file, "claims", claim, field) for field in (_OPTIONAL if extra else ())}
    return ClaimText(**found)


def _string(data: Mapping[str, Any], file: str, *keys: str) -> str:
    value: Any = data
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    if not isinstance(value, str) or not value.strip():
        message = f"{file}: {'.'.join(keys)} is missing; the other language's file shows what belongs there"
        raise PlanError(message)
    return value.strip()


def _read(path: Path, project: Path) -> dict[str, Any]:
    shown = path.relative_to(project).as_posix()
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        message = f"{shown}: can't be read: {error.strerror}"
        raise PlanError(message) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"{shown}: no valid TOML: {error}"
        raise PlanError(message) from error


def _flat(data: Mapping[str, Any], above: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in data.items():
        flat |= _flat(value, f"{above}{key}.") if isinstance(value, Mapping) else {f"{above}{key}": str(value).strip()}
    return flat


def _check_labels(language: str, labels: Mapping[str, Mapping[str, str]]) -> None:
    file = f"reportkit/site/labels.{language}.toml"
    mine, first = labels[language], labels[LANGUAGES[0]]
    everywhere = set().union(*labels.values()) | {f"reason.{code}" for code in REASONS}
    everywhere |= {f"{_CRITERIA}{field.name}" for field in dataclasses.fields(Criteria)}
    if language == LANGUAGES[0]:
        everywhere = {
            key for key in everywhere if not key.startswith(_CRITERIA)
        }  # Its docstrings are in this language.
    missing = sorted(everywhere - set(mine))
    if missing:
        message = f"{file}: {missing[0]} is missing"
        raise PlanError(message)
    for key, text in mine.items():
        if _placeholders(text) != _placeholders(first.get(key, text)):
            message = f"{file}: {key} fills {_placeholders(text)}, and {LANGUAGES[0]} fills {_placeholders(first[key])}"
            raise PlanError(message)
    for code, details in REASONS.items():
        unknown = sorted(_placeholders(mine[f"reason.{code}"]) - set(details))
        if unknown:
            message = f"{file}: reason.{code} asks for {unknown[0]!r}, which the judge does not tell; it has {details}"
            raise PlanError(message)


def _placeholders(text: str) -> set[str]:
    return {re.split(r"[.\[]", name)[0] for _, name, _, _ in string.Formatter().parse(text) if name}
