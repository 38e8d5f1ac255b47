"""Designs: which arrangements of members each makes equally likely."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from glasshouse.core.errors import InputError
from glasshouse.data import Units
from glasshouse.data.design import (
    DESIGNS,
    BySite,
    Design,
    FixedShare,
    RecordsAtRandom,
    Snowball,
    Undersampled,
    WithinStrata,
    as_design,
)

TOWNS = np.array(["a", "a", "a", "b", "b"])
MEMBERS = np.array([True, False, False, True, False])


def arrangements(design: Design, members: np.ndarray, units: Units | None = None) -> set[tuple[bool, ...]]:
    drawn = design.drawn(len(members), units, {}).arrangements(members, 2000, np.random.default_rng(0))
    return {tuple(row) for row in drawn.tolist()}


def test_strata_keep_their_counts_and_all_such_arrangements_come() -> None:
    every = {one for one in permutations(MEMBERS.tolist()) if sum(one[:3]) == 1 and sum(one[3:]) == 1}
    assert arrangements(WithinStrata(by=TOWNS), MEMBERS) == every
    assert len(every) == 6


def test_sites_stay_whole() -> None:
    found = arrangements(BySite(by=["a", "a", "b", "c", "c"]), np.array([True, True, False, False, False]))
    assert found == {
        (True, True, False, False, False),
        (False,) * 2 + (True, False, False),
        (False,) * 3 + (True, True),
    }


def test_arrangements_are_equally_frequent() -> None:
    draw = WithinStrata(by=TOWNS).drawn(5, None, {})
    drawn = draw.arrangements(MEMBERS, 60_000, np.random.default_rng(1))
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    assert np.abs(counts / 60_000 - 1 / 6).max() < 0.01


def test_a_site_that_is_partly_inside_is_refused() -> None:
    with pytest.raises(InputError, match="1 of 2 sites are partly inside"):
        BySite(by=["a", "a", "b"]).drawn(3, None, {}).arrangements(MEMBERS[:3], 1, np.random.default_rng(0))


def test_strata_with_unequal_shares_are_evened_out_without_a_look_at_scores() -> None:
    random = np.random.default_rng(0)
    classes = np.repeat(["rare", "usual"], [200, 800])
    members = np.where(classes == "rare", random.random(1000) < 0.9, random.random(1000) < 0.2)
    draw = Undersampled(by=classes).drawn(1000, None, {})
    kept = draw.even(members, seed=0)
    assert kept is not None
    for name in ("rare", "usual"):
        own = kept & (classes == name)
        assert (
            own.sum()
            == 2 * (own & members).sum()
            == 2 * min((members[classes == name]).sum(), (~members[classes == name]).sum())
        )
    assert draw.even(random.random(1000) < 0.5, seed=0) is None


def test_stated_shares_are_held_against_the_counts() -> None:
    members = np.arange(1000) < 300
    fits, other = (FixedShare(share=share).drawn(1000, None, {}).count_chance(members) for share in (0.3, 0.5))
    assert fits is not None
    assert other is not None
    assert fits > 0.9
    assert other < 1e-9


def test_units_that_were_split_by_a_draw_of_records_are_exchangeable_among_equal_sizes() -> None:
    units = Units(["a", "a", "b", "c", "d", "d"], partly="member")
    assert RecordsAtRandom().drawn(6, units, {}).strata.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("name", DESIGNS.names())
def test_every_design_is_made_from_what_an_audit_file_says(name: str) -> None:
    given: dict[str, Any] = {"name": name}
    given |= {"share": 0.4} if name == "share" else {"by": "town"} if name in ("strata", "site", "undersampled") else {}
    design = as_design(given)
    assert design is not None
    edges = np.array([[0, 1], [1, 2]])
    draw = design.drawn(5, None, {"town": TOWNS, "component": TOWNS, "edges": edges, "members": MEMBERS})
    assert draw.random == (name not in ("time", "unknown"))
    if draw.random and name != "snowball":
        columns = {"town": np.repeat(TOWNS, 20), "component": np.repeat(TOWNS, 20)}
        chosen = design.members(100, None, columns, share=0.5, seed=0)
        assert 20 < chosen.sum() < 80 or (name in ("site", "component") and chosen.sum() in (0, 40, 60, 100))


def test_a_snowball_is_repeated_along_edges_also_for_some_of_the_nodes() -> None:
    edges = np.array([np.arange(59), np.arange(1, 60)])  # a path: a snowball is a stretch of it
    members = np.arange(60) < 20
    draw = Snowball().drawn(60, None, {"edges": edges, "members": members})
    drawn = draw.arrangements(members, 300, np.random.default_rng(0))
    assert set(drawn.sum(axis=1)) == {20}
    pieces = (np.diff(np.pad(drawn, ((0, 0), (1, 1))).astype(int), axis=1) == 1).sum(axis=1)
    assert set(pieces) == {1}
    assert drawn.any(axis=0).all()
    assert not draw.plain
    some = draw.at(np.arange(0, 60, 2))
    assert set(some.arrangements(members[::2], 50, np.random.default_rng(0)).sum(axis=1)) == {10}


def test_a_snowball_needs_a_graph() -> None:
    with pytest.raises(InputError, match="a snowball draws the nodes of a graph"):
        Snowball().drawn(5, None, {})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("sites", 'Did you mean "site"'),
        ({"name": "strata"}, "design: strata needs by"),
        ({"name": "units", "by": "town"}, "design: units has no 'by'; it takes nothing"),
        ({"name": "share", "share": 1.0}, "is not between 0 and 1"),
    ],
)
def test_what_is_no_design_is_refused(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        as_design(given)


def test_a_person_in_two_strata_is_refused() -> None:
    with pytest.raises(InputError, match="by differs within a person"):
        WithinStrata(by=["a", "b", "a"]).drawn(3, Units(["x", "x", "y"]), {})
