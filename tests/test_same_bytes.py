"""A move must not change a figure: the small runs of `same_bytes`, held against those that are kept beside it."""

from __future__ import annotations

import hashlib
import json
import platform
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.same_bytes import Digests, differences, tiny
from tests.same_bytes_engines import of_network

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


def slice_of_engines() -> Digests:
    """All engines, both chains and training in one pass, for the three networks that have kernels and one more."""
    return {key: found for name in ("gcn", "sage", "gat", "gin") for key, found in of_network(name).items()}


def test_engines_chains_and_training_give_what_they_gave_before() -> None:
    """The whole is ``python -m tests.same_bytes_engines``, for a machine and for a GPU."""
    kept, found = json.loads(KEPT.read_text()), slice_of_engines()
    assert kept["engines"].keys() == found.keys()
    if kept["machine"] == machine():
        assert differences(kept["engines"], found) == []
    for name, before in kept["engines"].items():
        assert before.get("refused") == found[name].get("refused"), name
        if not name.startswith(("gibbs", "metropolis")):  # one draw that falls otherwise changes all that follow
            assert found[name].get("size", 0.0) == pytest.approx(before.get("size", 0.0), rel=1e-3), name


def test_a_changed_figure_is_told() -> None:
    before = {"digits online base": {"scores": "1", "auc": 0.5}, "gone": {"scores": "1"}}
    after = {"digits online base": {"scores": "2", "auc": 0.5}, "new": {"scores": "1"}}
    assert differences(before, after) == ["digits online base: scores differ", "gone: only before", "new: only after"]


if __name__ == "__main__":
    found = {"machine": machine(), "digests": tiny(), "engines": slice_of_engines()}
    KEPT.write_text(json.dumps(found, indent=1) + "\n")
