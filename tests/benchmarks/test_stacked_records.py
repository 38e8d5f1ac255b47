"""A small version of ``benchmarks/records/stacked_records.py``."""

from __future__ import annotations

from tests.benchmarks.scripts import benchmark


def test_time_and_memory_are_measured_beside_the_size_of_the_evidence() -> None:
    found = benchmark("stacked_records").measure(300, 4, "online", 1)
    assert found["size"] == 300 * (8 + 4 * 8 + 4) / 1e6
    assert found["peak"] > found["size"]
    assert found["processor"] > 0
