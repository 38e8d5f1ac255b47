"""Attacks on parts against sums over parts written out, and what simulated targets see."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse import Evidence, InputError
from glasshouse.attacks import BASE, Attack, LiRA, PartsBASE, PartsLiRA
from glasshouse.data import complementary_halves
from glasshouse.evidence import Mode, PartLosses
from glasshouse.evidence.parts import Ragged

MODES: tuple[Mode, Mode] = ("online", "offline")


def made(seed: int, records: int = 20, models: int = 6) -> Evidence:
    random = np.random.default_rng(seed)
    ends = np.concatenate([[0], np.cumsum(random.integers(1, 5, size=records))])
    losses = random.exponential(size=(models + 1, ends[-1])).astype(np.float32)
    sums = np.add.reduceat(losses.astype(np.float64), ends[:-1], axis=1)
    return Evidence(
        target_loss=sums[0],
        shadow_loss=sums[1:],
        shadow_members=complementary_halves(records, models=models, seed=seed),
        parts=PartLosses(target=losses[0], shadow=losses[1:], offsets=ends),
    )


def one_by_one(evidence: Evidence, attack: Attack, target: np.ndarray, rows: np.ndarray) -> list[float]:
    """Each part asked about alone, with all parts of the pool for a common variance."""
    parts = evidence.parts
    assert parts is not None
    owner = np.repeat(np.arange(evidence.records), np.diff(parts.offsets))
    every = Evidence(target_loss=target, shadow_loss=parts.shadow[rows],
                     shadow_members=evidence.shadow_members[np.ix_(rows, owner)])  # fmt: skip
    told = attack.log_odds(every) if isinstance(attack, BASE) else attack.score(every)
    return [sum(told[owner == record]) for record in range(evidence.records)]


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), offline=st.booleans())
def test_scores_are_sums_over_parts(seed: int, offline: bool) -> None:
    evidence, mode = made(seed), MODES[offline]
    parts, everyone = evidence.parts, np.arange(evidence.models)
    assert parts is not None
    for attack, each in ((PartsBASE(mode=mode), BASE(mode=mode)), (PartsLiRA(mode=mode), LiRA(mode=mode))):
        assert np.allclose(attack.score(evidence), one_by_one(evidence, each, parts.target, everyone))
        for k, (scores, members) in enumerate(attack.simulated_scores(evidence)):
            assert np.array_equal(members, evidence.shadow_members[k])
            pair = {k, *np.flatnonzero((evidence.shadow_members == ~evidence.shadow_members[k]).all(axis=1))}
            rest = np.array([row for row in everyone if row not in pair])
            tuned = each.tuned(evidence.of_parts())
            assert np.allclose(scores, one_by_one(evidence, tuned, parts.shadow[k], rest))
            if not offline:
                assert np.allclose(scores, attack.score(evidence.simulated_target(k).view))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_some_records_have_the_same_scores(seed: int) -> None:
    evidence = made(seed)
    some = np.random.default_rng(seed).permutation(evidence.records)[:3]
    assert np.allclose(PartsBASE().score(evidence.of_records(some)), PartsBASE().score(evidence)[some])


def test_ragged_and_refusals() -> None:
    found = Ragged.of({"loss": np.array([[1.0, np.nan], [2.0, 3.0]])})
    assert found.told["loss"].tolist() == [1, 2, 3]
    assert found.offsets.tolist() == [0, 1, 3]
    with pytest.raises(InputError, match="part_offsets"):
        PartLosses(target=np.ones(3, np.float32), shadow=np.ones((1, 3), np.float32), offsets=np.array([0, 2]))
    with pytest.raises(InputError, match=r"shadow_parts: shape \(1, 2\)"):
        PartLosses(target=np.ones(3, np.float32), shadow=np.ones((1, 2), np.float32), offsets=np.array([0, 3]))
    with pytest.raises(InputError, match="looks at parts of records, such as tokens, and there are none"):
        PartsBASE().score(Evidence(target_loss=[0.1], shadow_loss=[[0.1]], shadow_members=[[1]]))


def test_it_is_tuned_and_refuses_pools_as_the_attack_on_each_part() -> None:
    evidence, attack = made(1), PartsBASE(mode="offline")
    assert np.array_equal(attack.tuned(evidence).score(evidence), attack.score(evidence))  # few parts: all of them tune
    with pytest.raises(InputError, match="out-model"):
        PartsLiRA(mode="offline").check(np.ones((4, 20), dtype=bool))


def test_many_parts_are_tuned_on_some_of_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glasshouse.attacks.parts._ENOUGH", 20)
    evidence, attack = made(1), PartsBASE(mode="offline")
    few = attack.tuned(evidence).each_
    assert isinstance(few, BASE)
    assert few.scale != BASE(mode="offline").tuned(evidence.of_parts()).scale
