"""The comparison of kept metrics with another version: it sees every number, and only named causes excuse one."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.scripts import benchmark

kept = benchmark("kept_metrics")
BEFORE: dict[str, Any] = {
    "format": 4,
    "verdict": "a text",
    "attacks": {"base": {"auc": 0.7, "rates": [{"tpr": 0.1}, {"tpr": 0.2}], "listed": None}},
    "top_records": [{"base_score": 1.0, "base_steady": 0.5}],
}


def after(**changed: Any) -> dict[str, Any]:
    found = copy.deepcopy(BEFORE)
    found["top_records"] = [{"base_score": 1.0, "base_stability": 0.5}]
    found["attacks"]["base"] |= changed
    return found


def test_a_renamed_key_is_the_same_and_texts_are_not_compared() -> None:
    assert list(kept.differences(BEFORE, after() | {"verdict": "another text"})) == []


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"auc": 0.7000000000000001}, "attacks.base.auc"),
        ({"rates": [{"tpr": 0.1}, {"tpr": 0.3}]}, "attacks.base.rates[1].tpr"),
        ({"rates": [{"tpr": 0.1}]}, "attacks.base.rates[1].tpr"),
        ({"listed": 3}, "attacks.base.listed"),
        ({"new": 3}, "attacks.base.new"),
    ],
)
def test_a_number_that_differs_is_seen_in_its_last_bit_and_where_one_version_alone_has_it(
    changed: dict[str, Any], place: str
) -> None:
    ((found, _, _),) = kept.differences(BEFORE, after(**changed))
    assert found == place


def test_only_a_difference_without_a_cause_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = after(auc=0.8, listed=3) | {"format": 6}
    for folder, metrics in (("before", BEFORE), ("after", changed)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "00.json").write_text(json.dumps({"name": "one", "metrics": metrics}))
    assert kept.compared(tmp_path / "before", tmp_path / "after") == 1
    said = capsys.readouterr()
    assert said.err == "one: attacks.base.auc: 0.7 -> 0.8\n"
    assert "| one | 7 | 3 |" in said.out


def test_keywords_are_grouped_as_this_version_takes_them() -> None:
    given = kept._call(lambda **options: options, prior=0.1, policy="max", shadows=2)
    assert (given["attacker"].prior, given["evaluation"].threshold, given["shadows"]) == (0.1, "max", 2)
