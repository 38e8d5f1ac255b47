"""A small version of `cluster.py`, with tasks that are done here, from the bytes that a worker would get."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from glasshouse.graph import citation_graph
from tests.benchmarks.scripts import benchmark
from tests.compute.test_tasks import Recorded


def test_the_benchmark_compares_the_bytes_of_all_ways_to_score(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"):
        monkeypatch.setenv(name, os.environ.get(name, "1"))  # the script sets them, for itself
    script, places = benchmark("cluster"), []

    @contextlib.contextmanager
    def cluster(nodes: int) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(address="here", worker_nodes=set(range(nodes)), remove_node=lambda *_, **__: None)

    def place(address: str) -> Recorded:
        places.append(Recorded())
        return places[-1]

    monkeypatch.setattr(script, "cluster", cluster)
    monkeypatch.setattr(script, "RayCluster", place)
    monkeypatch.setattr(script, "load_graph", lambda name: citation_graph(nodes=100, classes=3))
    monkeypatch.setattr(script.time, "sleep", lambda seconds: None)
    monkeypatch.setattr("glasshouse.compute.base._GO_ON", 0.0)
    make = script.made_scene("made up", shadows=4, hidden=4, epochs=2)
    rows = script.measured(script.create("g-base", samples=2), make, turns=1, lost_after=0.0)
    text = script.table("g-base", rows)
    assert "the same bytes everywhere" in text
    assert len(places) == 3
    assert all(len(one.runs) > 2 for one in places), "scoring did not travel"
    different = script.table("g-base", [*rows[:-1], rows[-1]._replace(digest="other")])
    assert "DIFFERENT BYTES" in different
