"""A move must not change a figure: the small runs of `same_bytes`, held against those that are kept beside it."""

from __future__ import annotations

import hashlib
import json
import platform
from pathlib import Path

import numpy as np
import torch

from tests.same_bytes import differences, tiny

KEPT = Path(__file__).with_name("same_bytes.json")


def machine() -> str:
    """What decides how numbers are rounded."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text().split("\n\n")[0].splitlines() if known.exists() else []
    parts = [line for line in lines if line.startswith(("vendor_id", "cpu family", "model", "stepping", "flags"))]
    processor = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    return f"{platform.machine()} {processor}, torch {torch.__version__}, numpy {np.__version__}"


def test_scores_thresholds_and_metrics_are_those_of_the_versions_before() -> None:
    """On the machine that wrote the file, byte for byte; elsewhere, where numbers round otherwise, nearly.

    To renew it after a change that is meant: ``python -m tests.test_same_bytes``.
    """
    kept, found = json.loads(KEPT.read_text()), tiny()
    if kept["machine"] == machine():
        assert differences(kept["digests"], found) == []
    areas = {name: (digests.get("auc"), found[name].get("auc")) for name, digests in kept["digests"].items()}
    assert all(before == after or abs(before - after) < 0.03 for before, after in areas.values()), areas


def test_a_changed_figure_is_told() -> None:
    before = {"digits online base": {"scores": "1", "auc": 0.5}, "gone": {"scores": "1"}}
    after = {"digits online base": {"scores": "2", "auc": 0.5}, "new": {"scores": "1"}}
    assert differences(before, after) == ["digits online base: scores differ", "gone: only before", "new: only after"]


if __name__ == "__main__":
    KEPT.write_text(json.dumps({"machine": machine(), "digests": tiny()}, indent=1) + "\n")
