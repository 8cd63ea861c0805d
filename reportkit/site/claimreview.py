"""A claim for machines: an object with everything on its page, and the page's ClaimReview.

The object is the file `claims/ID.json`, one for all languages: its figures are the same in each, and two copies could
come to differ. What is words in it is there in every language. The ClaimReview (schema.org) is in the page's language.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from reportkit import __version__
from reportkit.judge import as_objects
from reportkit.lanes import measuring
from reportkit.records import PROTOCOL
from reportkit.site import exports, lines, naming
from reportkit.site.edition import DECIDED
from reportkit.site.markup import plain, unmarked
from reportkit.site.texts import LANGUAGES

if TYPE_CHECKING:
    from reportkit.claims import Claim
    from reportkit.plan import Section
    from reportkit.site.edition import Edition
    from reportkit.site.texts import Texts

RAW = exports.FOLDER
"""Folder below the site's root with a copy of every case file, shared by the languages."""

_DIGITS = 6
_RATINGS = {"supported": 3, "inconclusive": 2, "refuted": 1}
"""On a scale from 1 to 3: schema.org wants a number beside the word."""


def path(claim: Claim) -> str:
    """Return where the object of a claim lies, below the site's root."""
    return f"claims/{claim.id}.json"


def repeat(edition: Edition, claim: Claim) -> str:
    """Return the one command that measures a claim again and builds the site."""
    judged = claim.lane or edition.article.lane
    needed = dict.fromkeys(where.lane or judged for where in claim.quantity.cases())
    return measuring(*needed, rest=f"report -- {claim.id}")


def as_object(edition: Edition, section: Section, claim: Claim) -> dict[str, Any]:
    """Return all that is known of a claim, as plain values; its verdicts as `verdicts --json` prints them.

    Paths of case files are those in the repository; `raw` leads from this file to their copies on the site.
    """
    texts = {language: edition.texts[language] for language in LANGUAGES}
    cases = edition.article.needs(claim)
    speaks = edition.headline(claim.id)
    return {
        "id": claim.id,
        "section": section.id,
        "statement": {key: plain(one.claims[claim.id].statement) for key, one in texts.items()},
        "reading": {key: plain(one.claims[claim.id].reading) for key, one in texts.items()},
        "source": {key: plain(one.claims[claim.id].source) for key, one in texts.items()},
        "quantity": {key: plain(naming.quantity(one, claim.quantity)) for key, one in texts.items()},
        "held_to": {key: plain(lines.bound(one, claim)) for key, one in texts.items()},
        "bound": asdict(claim.bound),
        "on": claim.on,
        "lane": claim.lane,
        "settings": list(claim.settings),
        "headline": {"lane": speaks.lane, "machine": speaks.machine, "verdict": speaks.outcome},
        "verdicts": as_objects(edition.of(claim.id)),
        "cases": [case.name for case in cases],
        "unused": [
            {
                "file": stored.path,
                "case": stored.file.case,
                "run": stored.file.run,
                "lane": stored.file.lane,
                "machine": stored.file.machine,
                "scale": stored.file.scale,
                "started": stored.file.provenance.started,
                "commit": stored.file.provenance.commit,
                "why": why,
            }
            for stored, why in edition.history(claim.id)
        ],
        "code": [{"name": one.name, "path": one.path, "line": one.line} for one in edition.code[claim.id]],
        "repeat": repeat(edition, claim) if cases else None,
        "raw": f"../{RAW}/",
        "pages": {key: ("" if key == LANGUAGES[0] else f"../{key}/claims/") + f"{claim.id}.html" for key in LANGUAGES},
        "protocol": PROTOCOL,
        "reportkit": __version__,
    }


def as_review(edition: Edition, texts: Texts, claim: Claim, site: str, above: str) -> dict[str, Any]:
    """Return the ClaimReview of a claim's page, of the verdict that speaks for it.

    `site` is what the site is called, `above` leads from the page's folder to the folder that all languages share.
    It is rated only where it was decided, or is inconclusive: what nobody measured has no rating.
    """
    verdict = edition.headline(claim.id)
    text = texts.claims[claim.id]
    said = unmarked(lines.sentence(texts, claim, verdict))
    files = [edition.by_path[one] for one in verdict.files if one in edition.by_path]
    review: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "ClaimReview",
        "url": f"{claim.id}.html",
        "inLanguage": texts.language,
        "claimReviewed": plain(text.statement),
        "itemReviewed": {
            "@type": "Claim",
            "name": plain(text.statement),
            "appearance": {"@type": "Article", "name": plain(text.source)},
        },
        "author": {"@type": "Organization", "name": site},
        "headline": said,
        "reviewBody": unmarked(lines.why(texts, claim, verdict)),
        "subjectOf": {
            "@type": "DataDownload",
            "encodingFormat": "application/json",
            "contentUrl": f"{above}{path(claim)}",
        },
        "isBasedOn": [f"{above}{RAW}/{one.path}" for one in files],
    }
    if files:
        review["datePublished"] = max(one.file.provenance.finished for one in files)[:10]
    if verdict.outcome in DECIDED:
        review["reviewRating"] = {
            "@type": "Rating",
            "ratingValue": _RATINGS[verdict.outcome],
            "worstRating": min(_RATINGS.values()),
            "bestRating": max(_RATINGS.values()),
            "alternateName": plain(texts(f"outcome.{verdict.outcome}")),
            "ratingExplanation": said,
        }
        ends = {"minValue": claim.bound.low, "maxValue": claim.bound.high}
        bound = {key: value for key, value in ends.items() if value is not None}
        interval = verdict.interval
        if interval is not None and bound:
            # As numbers too, for who would rather not read them out of a sentence.
            about = {"minValue": interval.low, "value": interval.centre, "maxValue": interval.high}
            review["about"] = [
                {
                    "@type": "PropertyValue",
                    "name": texts(f"ledger.{key}"),
                    "unitText": interval.unit,
                    **{name: float(f"{value:.{_DIGITS}g}") for name, value in values.items()},
                }
                for key, values in (("value", about), ("bound", bound))
            ]
    return review
