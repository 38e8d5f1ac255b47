"""A small version of benchmarks/robustness/scaling.py: work grows with columns and models, not with their square."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from glasshouse import Evidence, Population
from glasshouse.attacks import create
from glasshouse.attacks import in_out_moments as sums
from glasshouse.config import encoding
from glasshouse.config.columns import Rows, TableSection
from glasshouse.data import complementary_halves, random_subsets
from glasshouse.data.features import plain_parts
from tests.benchmarks.scripts import benchmark

scaling = benchmark("scaling") if sys.platform.startswith("linux") else None


class Counted(str):
    """A column's name that counts how often it is compared with another one."""

    comparisons = 0
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return str.__eq__(self, other)


COLUMNS = 400
MOST = 20 * COLUMNS  # comparisons; with a look at all names for each name there are 80 000 and more


def names() -> list[str]:
    Counted.comparisons = 0
    return [Counted(f"c{one}") for one in range(COLUMNS)]


def test_columns_of_a_table_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cells: dict[str, list[str]] = {name: ["1", "2", "4", "3"] for name in names()} | {"label": ["0", "1", "0", "1"]}
    rows = Rows(columns=cells, counts=(4,), paths=(tmp_path / "t.csv",), separator=",")
    monkeypatch.setattr(encoding, "read_rows", lambda section, folder: rows)
    some = tuple(f"c{one}" for one in range(0, COLUMNS, 2))
    section = TableSection(name="file", path="t.csv", groups=some, categories=some)
    found = encoding.read_records(section, tmp_path)
    assert found.population.x.shape == (4, COLUMNS // 2 + 4 * COLUMNS // 2)
    assert Counted.comparisons < MOST


def test_columns_of_a_data_frame_are_not_compared_with_each_other() -> None:
    frame = pandas.DataFrame({place: [1, 2] if place % 2 else ["a", "b"] for place in range(COLUMNS)})
    frame.columns = pandas.Index(names(), dtype=object)
    Counted.comparisons = 0
    assert len(plain_parts(frame)) == 1 + COLUMNS // 2
    assert Counted.comparisons < MOST


def test_columns_of_two_parts_are_not_compared_with_each_other() -> None:
    parts = [Population({name: [1.0, 2.0] for name in names()}, [0, 1]) for _ in range(2)]
    Counted.comparisons = 0
    whole, _ = Population.from_parts(*parts)
    assert len(whole.x) == COLUMNS
    assert Counted.comparisons < MOST


def test_left_out_columns_are_not_compared_with_all_others() -> None:
    frame = pandas.DataFrame({place: [0, 1] for place in range(COLUMNS + 1)})
    frame.columns = pandas.Index([*names(), "label"], dtype=object)
    some = [f"c{one}" for one in range(0, COLUMNS, 2)]
    Counted.comparisons = 0
    assert Population(frame, "label", leave_out=some).x.shape == (2, COLUMNS // 2)
    assert Counted.comparisons < MOST


def test_growth_tells_linear_work_from_quadratic_work() -> None:
    assert scaling is not None
    assert scaling.growth((11.0, 12.0, 14.0), 0.1) == pytest.approx(2.0)
    assert scaling.growth((11.0, 14.0, 26.0), 0.1) == pytest.approx(4.0)
    assert scaling.growth((11.0, 11.0, 11.05), 0.1) == 0.0


LIGHT = (
    *("base", "rmia", "lira", "bavaria", "shrunk-lira", "regressed", "quantile", "informia", "calibration"),
    *("attack-r", "loss"),
)


def additions(name: str, design: str, models: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many numbers of models an attack adds up for all simulated targets of a pool."""
    found, records = 0, 6
    made = sums.LeaveOut.__init__

    def counting(self: Any, parts: Any, combine: Any) -> None:
        def counted(*given: Any) -> Any:
            nonlocal found
            found += sum(one.size for one in given)
            return combine(*given)

        made(self, parts, counted)

    random = np.random.default_rng(0)
    members = {
        "pairs": lambda: complementary_halves(records, models=models, seed=0),
        "balanced": lambda: random.random((models, records)).argsort(axis=0) < models // 2,
        "independent": lambda: random_subsets(records, models=models, fraction=0.5, seed=0),
    }[design]()
    loss = random.exponential(size=members.shape)
    with monkeypatch.context() as patched:
        patched.setattr(sums.LeaveOut, "__init__", counting)
        patched.setattr(Evidence, "among", lambda self, rows, **_: self if not len(rows) else pytest.fail("a copy"))
        evidence = Evidence(target_loss=loss[0], shadow_loss=loss, shadow_members=members)
        assert sum(1 for _ in create(name).tuned(evidence).simulated_scores(evidence)) == models
    return found


@pytest.mark.parametrize("design", ["pairs", "balanced", "independent"])
@pytest.mark.parametrize("name", LIGHT)
def test_simulated_targets_of_a_large_pool_are_not_each_judged_by_a_sum_over_all_others(
    name: str, design: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 128 to 512 models: 4 times the work and a little more, where sums over all others take 16 times."""
    few, many = (additions(name, design, models, monkeypatch) for models in (128, 512))
    assert many < 6 * few or name in ("attack-r", "loss")  # they add nothing up


def test_rows_of_dimensions_that_were_not_measured_stay_on_the_page() -> None:
    assert scaling is not None
    first = scaling.page([scaling.Grown(name, 2, (1.0, 2.0, 4.0), (1e9, 2e9, 4e9)) for name in ("models", "edges")], 1)
    again = scaling.page([scaling.Grown("models", 2, (1.0, 2.0, 6.0), (1e9, 2e9, 4e9))], 1, first)
    assert again == first.replace("1.00, 2.00, 4.00 | 2.0", "1.00, 2.00, 6.00 | 4.0", 1)
