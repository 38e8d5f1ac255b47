"""The unit of privacy: whose rows are whose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pytest

from glasshouse import Population
from glasshouse.core.errors import InputError
from glasshouse.data import Units, complementary_halves, random_subsets
from glasshouse.pool import ShadowPool


def test_sums_and_means_are_those_of_a_loop() -> None:
    random = np.random.default_rng(0)
    of = random.integers(7, size=50)
    units, values = Units(of), random.normal(size=(3, 50))
    for place, name in enumerate(units.names):
        mine = values[:, of == int(name)]
        np.testing.assert_allclose(units.sums(values)[:, place], mine.sum(axis=1))
        np.testing.assert_allclose(units.means(values)[:, place], mine.mean(axis=1))


def test_units_are_in_the_order_in_which_they_come() -> None:
    assert Units(["b", "a", "b", "c"]).names.tolist() == ["b", "a", "c"]


def test_who_is_partly_inside_is_refused_in_one_line_or_declared() -> None:
    with pytest.raises(InputError, match="members: person 'ann' has 1 of 2 records inside") as error:
        Units(["ann", "bob", "ann"]).members([1, 1, 0], place="members")
    assert len(error.value.faults) == 1
    assert Units(["ann", "bob", "ann"], partly="member").members([1, 0, 0], place="members").tolist() == [True, False]


@pytest.mark.parametrize(
    ("of", "said"),
    [([["a"]], "one name per record"), ([None, "a"], "has no unit"), (["a", "a"], "belong to one person")],
)
def test_what_names_no_units_is_refused(of: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Population(np.zeros((len(of), 1)), np.arange(len(of)) % 2, unit=of)


def test_a_column_of_a_table_names_them_and_is_no_feature() -> None:
    frame = pandas.DataFrame({"who": ["a", "b", "a"], "age": [1, 2, 3], "y": [0, 1, 0]})
    population = Population(frame, "y", unit="who")
    assert list(population.x.columns) == ["age"]
    assert population.unit is not None
    assert population.unit.names.tolist() == ["a", "b"]
    assert population.fingerprint() != Population(frame.drop(columns="who"), "y").fingerprint()


def test_every_draw_takes_units_whole() -> None:
    units = Units(np.arange(60) // 3)
    pool = ShadowPool.plan(
        Population(np.zeros((60, 1)), np.arange(60) % 2, unit=units), lambda *_: None, shadows=4, seed=1
    )
    drawn = [
        *pool.members,
        *complementary_halves(60, models=2, seed=0, units=units),
        *random_subsets(60, models=2, fraction=0.3, seed=0, units=units),
    ]
    for one in drawn:
        units.members(one, place="drawn")  # refuses who is partly inside
    assert random_subsets(60, models=1, fraction=0.3, seed=0, units=units).sum() == 18


def test_a_column_of_units_is_a_mean_or_the_most_frequent_value() -> None:
    units = Units(["a", "a", "a", "b"])
    assert units.column(np.array([1.0, 2.0, 6.0, 4.0])).tolist() == [3.0, 4.0]
    assert units.column(np.array(["x", "y", "y", "z"])).tolist() == ["y", "z"]
    assert not units.constant(np.array(["x", "y", "y", "z"]))
    assert units.constant(np.array([2, 2, 2, 5]))


def test_units_in_order_have_the_sums_of_units_by_name() -> None:
    values = np.random.default_rng(0).normal(size=(3, 6))
    ordered = Units.in_order(np.array(["a", "b", "c"]), np.array([0, 1, 4, 6]))
    named = Units(["a", "b", "b", "b", "c", "c"])
    assert np.array_equal(ordered.rows, named.rows)
    np.testing.assert_allclose(ordered.sums(values), named.sums(values))
    np.testing.assert_allclose(ordered.means(values[0]), named.means(values[0]))
    assert ordered.at(np.array([4, 0])).names.tolist() == ["c", "a"]
