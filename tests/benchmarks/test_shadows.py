"""A small version of benchmarks/records/shadows.py: two attacks with two and four models on 300 digits."""

from __future__ import annotations

from tests.benchmarks.scripts import benchmark


def test_attacks_that_need_more_models_are_left_out_of_the_column() -> None:
    shadows = benchmark("shadows")
    pool = shadows.trained(4, 2, records=300, epochs=30)
    found = shadows.figures(pool, sizes=(2, 4), attacks=("base", "regressed"))
    assert found["regressed"][2] == "-"
    for row in (found["base"][2], found["base"][4], found["regressed"][4]):
        assert float(row.split(" ")[0]) > 50  # members are found better than by a coin
    text = shadows.table("digits", found)
    assert text.splitlines()[0] == "| digits | K = 2 | K = 4 |"
    assert len(text.splitlines()) == 4
