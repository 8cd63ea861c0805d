"""The article's contract: every claim that was listed beforehand is in the plan, with the bound fixed there.

The bounds were fixed before anything was measured, and a bound never moves to fit a result. This table repeats
them, so that a change is seen for what it is.
"""

from __future__ import annotations

import pytest

from experiments import ARTICLE
from reportkit.claims import SHOWN, TRUE, Bound, Untestable, above, at_least, at_most, below, between, outside

FIXED: dict[str, tuple[int, Bound, str]] = {
    # Section 1
    "eager-many-launches": (1, at_least(1.3), "cuda"),
    "eager-idle-gpu": (1, at_most(0.8), "cuda"),
    "gain-varies-batch": (1, at_least(1.2), "cuda"),
    "gain-varies-model": (1, at_least(1.2), "cuda"),
    "gain-varies-hardware": (1, SHOWN, ""),
    # Section 2
    "torchscript-can-speed-up": (2, above(1.02), "cuda"),
    "torchscript-no-control-flow": (2, TRUE, "any"),
    "torchscript-adoption": (2, SHOWN, ""),
    "capture-unmodified": (2, TRUE, "any"),
    "default-inductor": (2, TRUE, "any"),
    "uses-cuda-graphs": (2, TRUE, "cuda"),
    "uses-triton-kernels": (2, TRUE, "cuda"),
    "uses-cpp-kernels": (2, TRUE, "any"),
    "dynamic-new-in-2.5": (2, TRUE, "any"),
    "cache-new-in-2.5": (2, TRUE, "any"),
    "cache-hits": (2, TRUE, "any"),
    "cache-saves-time": (2, at_most(0.5), "cuda"),
    # Section 3
    "fusion-fewer-launches": (3, at_most(0.8), "cuda"),
    "autotune-attention": (3, TRUE, "cuda"),
    "autotune-normalization": (3, TRUE, "cuda"),
    "autotune-picks-fastest": (3, TRUE, "cuda"),
    "range-kernel": (3, at_most(2), "any"),
    "range-fewer-recompiles": (3, at_most(0.5), "any"),
    # Section 4
    "table-resnet50": (4, between(1.42, 1.87), "cuda"),
    "table-bert": (4, between(1.09, 1.44), "cuda"),
    "table-gpt2": (4, between(1.02, 1.28), "cuda"),
    "table-dynamic-cnn": (4, between(1.03, 1.36), "cuda"),
    "table-sd": (4, between(1.37, 1.82), "cuda"),
    "resnet50-stable": (4, at_most(1.05), "cuda"),
    "bert-compile-costly": (4, above(1.0), "cuda"),
    "gpt2-memory-bound": (4, at_least(0.5), "cuda"),
    "dynamic-costs": (4, below(0.95), "cuda"),
    "compute-bound-gain-more": (4, above(1.15), "cuda"),
    "llm-gain-limited": (4, at_most(1.2), "cuda"),
    "llm-static-cache": (4, SHOWN, "cuda"),
    # Section 5
    "q1-one-line": (5, TRUE, "any"),
    "q1-extension-needs-care": (5, TRUE, "any"),
    "q2-first-call-slow": (5, between(2, 100), "cuda"),
    "q2-phases": (5, at_least(0.8), "cuda"),
    "q2-limit-controls": (5, outside(0.9, 1.1), "cuda"),
    "q2-dynamic-helps": (5, at_most(0.5), "any"),
    "q3-trainer": (5, TRUE, "any"),
    "q3-from-pretrained": (5, TRUE, "any"),
    "q4-gain": (5, between(1.05, 1.21), "cuda"),
    "q4-gain-graphs": (5, SHOWN, "cuda"),
    "q4-compile-doubles": (5, between(1.7, 2.5), "cuda"),
    "q4-default-first": (5, SHOWN, ""),
    "q5-amp-works": (5, TRUE, "cuda"),
    "q5-less-memory": (5, below(0.98), "cuda"),
    "q5-less-energy": (5, below(0.98), "cuda"),
    "q5-amp-api": (5, TRUE, "any"),
    # Section 6
    "inference-over-training": (6, above(1.05), "cuda"),
    "training-range": (6, between(0.95, 1.26), "cuda"),
    "backward-is-bottleneck": (6, above(1.05), "cuda"),
    "small-model-not-worth": (6, below(1.0), "cuda"),
    "moe-breaks": (6, TRUE, "any"),
    "moe-gains-less": (6, below(0.95), "cuda"),
    "recursive-gains-less": (6, at_most(1.05), "cuda"),
    "custom-kernel-unfused": (6, below(0.95), "cuda"),
    # Section 7
    "pytorch-3-default": (7, SHOWN, ""),
    "shapes-generalised": (7, below(1.0), "any"),
    "dynamic-near-static": (7, at_least(0.9), "cuda"),
    "other-hardware": (7, TRUE, "any"),
    # Section 8
    "good-cases": (8, above(1.1), "cuda"),
    "batch-helps": (8, above(1.0), "cuda"),
    "varlen-caution": (8, below(0.95), "cuda"),
    "generator-caution": (8, at_most(1.1), "cuda"),
    "dynamo-profiler": (8, TRUE, "any"),
    "gain-30-60": (8, between(1.24, 1.68), "cuda"),
    "can-be-slower": (8, TRUE, "cuda"),
}
"""Section, bound and machine of every claim, in the order of the list; no machine where nothing can be tested."""

SETTINGS = {
    "table-resnet50": {"d", "t"},
    "table-bert": {"d", "t"},
    "table-dynamic-cnn": {"d", "t"},
    "table-sd": {"h", "d", "t"},
    "training-range": {"a", "d"},
    "good-cases": {"d", "t", "h"},
    "gain-30-60": {"d", "t", "h"},
}
"""Precisions of the claims that are judged under several."""

LANES = {"dynamic-new-in-2.5": "2.4", "cache-new-in-2.5": "2.5", "shapes-generalised": "2.15"}
"""Lanes of the claims that speak of one."""


def test_every_claim_that_was_listed_is_in_the_plan_in_reading_order() -> None:
    assert [claim.id for claim in ARTICLE.checked if claim.id in FIXED] == [
        claim.id for claim in sorted(ARTICLE.checked, key=lambda claim: FIXED[claim.id][0])
    ]
    assert {claim.id for claim in ARTICLE.checked} == FIXED.keys()


@pytest.mark.parametrize("section", ARTICLE.sections[1:], ids=lambda section: section.id)
def test_no_bound_has_moved(section: object) -> None:
    for claim in section.claims:  # type: ignore[attr-defined]
        number, bound, machine = FIXED[claim.id]
        assert (section.number, claim.bound) == (number, bound), claim.id  # type: ignore[attr-defined]
        assert isinstance(claim.quantity, Untestable) == (machine == ""), claim.id
        assert machine in {claim.on, ""}, claim.id
        assert claim.lane == LANES.get(claim.id), claim.id
        assert set(claim.settings) == SETTINGS.get(claim.id, set()), claim.id


def test_sections_are_in_reading_order() -> None:
    assert [section.number for section in ARTICLE.sections] == list(range(9))
