"""Both languages say everything, and the same things."""

from __future__ import annotations

import dataclasses
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from experiments import ARTICLE
from reportkit.judge import REASONS, Criteria, Reason
from reportkit.plan import PlanError
from reportkit.site import lines, texts
from reportkit.site.fragments import docstrings
from tests.site.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LANGUAGES = texts.load_texts(ROOT, ARTICLE)
HAN = r"[\u3400-\u9fff\u3001\u3002\uff08\uff09\uff0c\uff1a\uff1b\uff1f\u201c\u201d]"
CHINESE = [
    *sorted((ROOT / "docs" / "zh").rglob("*.md")),
    ROOT / "experiments" / "claims.zh.toml",
    ROOT / "reportkit" / "site" / "labels.zh.toml",
    *ROOT.glob("README.zh.md"),
]


@pytest.mark.parametrize("language", texts.LANGUAGES)
@pytest.mark.parametrize("code", REASONS)
def test_every_reason_of_the_judge_has_its_sentence(language: str, code: str) -> None:
    values: dict[str, str | float] = {
        "noise": 0.123,
        "ceiling": 0.1,
        "dropped": 0.25,
        "by": 0.04,
        "allowed": 0.03,
        "differs": "digest",
        "status": "crashed",
        "supported": "d",
        "refuted": "t",
    }
    details = {key: values.get(key, f"the {key}") for key in REASONS[code]}
    sentence = lines.reason(LANGUAGES[language], Reason(code=code, details=details))
    assert sentence
    assert "{" not in sentence
    for key, value in details.items():
        asked = f"{{{key}}}" in LANGUAGES[language].labels[f"reason.{code}"]
        if asked and key not in values:
            assert str(value) in sentence


def test_every_threshold_is_explained() -> None:
    fields = {field.name for field in dataclasses.fields(Criteria)}
    assert fields - set(docstrings(Criteria)) <= {"seed"}
    assert all(LANGUAGES["zh"](f"criteria.{name}") for name in fields)


@pytest.mark.parametrize(
    ("find", "instead", "message"),
    [
        (
            '[claims.table-bert]\nstatement = "',
            '[claims.table-bert]\nsaid = "',
            "claims.table-bert.statement is missing",
        ),
        ('resnet50 = "ResNet-50"\n', "", "names.workload.resnet50 is missing"),
        ('benchmarks = "', 'benchmark = "', "sections.benchmarks is missing"),
        ("[claims.table-bert]", "[claims.table-bret]", "claims.table-bert.statement is missing"),
        ("[sections]", "[claims.other]\nstatement = 'x'\n[sections]", "claims.other is the text of no claim"),
        ("[sections]", "[sections", "no valid TOML"),
    ],
)
def test_a_missing_translation_is_one_message_with_file_and_key(
    tmp_path: Path, find: str, instead: str, message: str
) -> None:
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments")
    file = tmp_path / "experiments" / "claims.zh.toml"
    text = file.read_text(encoding="utf-8")
    assert find in text
    file.write_text(text.replace(find, instead), encoding="utf-8")
    with pytest.raises(PlanError, match=r"^experiments/claims\.zh\.toml: ") as raised:
        texts.load_texts(tmp_path, ARTICLE)
    assert message in str(raised.value)


def test_a_missing_label_is_one_message_with_file_and_key() -> None:
    with pytest.raises(PlanError, match=r"labels.en.toml: nothing for 'no.such' \(asked for as 'no.such'\)"):
        LANGUAGES["en"]("no.such")
    with pytest.raises(PlanError, match=r"labels.zh.toml: nothing for 'lane'"):
        LANGUAGES["zh"]("reason.see-lane")


@pytest.mark.parametrize("file", CHINESE, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_chinese_has_its_own_punctuation_and_room_around_latin(file: Path) -> None:
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        words = re.sub(r"`[^`]*`|\{[^{}]*\}", "x", line).replace("*", "")
        assert not re.search(rf"{HAN}\s?[,:;?!]|[,:;?!]\s?{HAN}", words), (number, line)
        assert not re.search(r"[\u3400-\u9fff][A-Za-z]|[A-Za-z][\u3400-\u9fff]", words.replace("x", "")), (number, line)
