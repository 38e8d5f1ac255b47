from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from glasshouse.attacks import BASE, BaVarIA, LiRA, parts, stacked
from glasshouse.attacks.stacked import record_features, usual_of
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import margin_to_loss
from glasshouse.evidence import Evidence, Mode
from tests.attacks.test_parts import made
from tests.strategies import gaussian_evidence


def test_the_features_are_the_single_attacks_themselves() -> None:
    evidence, _ = gaussian_evidence(records=50, models=8, shift=1.0, seed=0)
    found = record_features(evidence, mode="online")
    assert found["base"] == pytest.approx(BASE().log_odds(evidence))
    assert found["ratio"] == pytest.approx(LiRA(variance="global").score(evidence))
    assert found["own_ratio"] == pytest.approx(BaVarIA().score(evidence))


def test_offline_no_in_model_of_a_record_is_looked_at() -> None:
    evidence, _ = gaussian_evidence(records=50, models=8, shift=1.0, seed=0)
    loss = np.where(evidence.shadow_members, 7.0, evidence.shadow_loss)
    changed = dataclasses.replace(evidence, shadow_loss=loss)
    first, second = (record_features(one, mode="offline") for one in (evidence, changed))
    assert all((first[name] == second[name]).all() for name in first)


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_a_pool_without_out_models_is_refused_with_what_to_do(mode: Mode) -> None:
    evidence = Evidence(target_loss=np.ones(1), shadow_loss=np.ones((2, 1)), shadow_members=np.ones((2, 1)))
    with pytest.raises(InputError, match="out-models. Train more shadow models, or use a share"):
        record_features(evidence, mode=mode)


def test_a_record_without_in_models_gets_the_usual_shift() -> None:
    """The first record: elsewhere in-models lie 1.5 above out-models, so its in-mean does too."""
    margins = np.array([[0.0, 3.0], [1.0, 5.0], [2.0, 4.0]])
    members = np.array([[False, False], [False, True], [False, True]])
    evidence = Evidence(target_loss=np.ones(2), shadow_loss=margin_to_loss(margins), shadow_members=members)
    found = record_features(evidence, mode="online")
    np.testing.assert_allclose(found["outside"], [1.0, 3.0])
    np.testing.assert_allclose(found["inside"], [1.0 + 1.5, 4.5])
    assert all(np.isfinite(value).all() for value in found.values())


def test_a_single_model_per_side_has_no_spread_and_is_not_an_error() -> None:
    evidence = Evidence(target_loss=[1.0], shadow_loss=[[0.5], [2.0]], shadow_members=[[True], [False]])
    found = record_features(evidence, mode="online")
    assert all(np.isfinite(value).all() for value in found.values())


@pytest.mark.parametrize("mode", ["online", "offline"])
@pytest.mark.parametrize("each", [False, True])
def test_features_of_some_records_are_those_of_all(mode: Mode, each: bool) -> None:
    """Bit for bit: the twin computes the features of all records, and looks some of them up."""
    evidence, _ = gaussian_evidence(records=9000, models=8, shift=1.0, seed=0)  # more than one block
    random = np.random.default_rng(0)
    alike = np.array([0, 1, 4, 5, 6, 7])[:, None]
    references = alike[random.permuted(np.tile(np.arange(6), (9000, 1)), axis=1).T, 0] if each else alike
    usual = usual_of(evidence, references, mode=mode)
    records = random.permutation(9000)[:700]
    for model in (None, 2):
        whole = record_features(evidence.among(references, model=model), mode=mode)
        some = record_features(evidence.among(references, model=model, records=records), mode=mode, usual=usual)
        assert list(some) == list(whole)
        assert all((some[name] == whole[name][records]).all() for name in whole)


@pytest.mark.parametrize("mode", ["online", "offline"])
@pytest.mark.parametrize("each", [False, True])
def test_features_of_parts_are_sums_over_a_records_parts(mode: Mode, each: bool) -> None:
    """The twin asks about every part as a record of its own, and adds up one record at a time."""
    evidence = made(0, records=1100, models=8)  # more than two blocks
    references = np.array([0, 1, 4, 5, 6, 7])[:, None]
    if each:  # other models for each record
        references = np.random.default_rng(0).permuted(np.tile(np.arange(8)[:, None], (1, 1100)), axis=0)[:6]
    usual, records = usual_of(evidence, references, mode=mode), np.random.default_rng(1).permutation(1100)[:700]
    for model in (None, 2):
        view = evidence.among(references, model=model)
        assert view.parts is not None
        every = record_features(view.of_parts(), mode=mode)
        ends = view.parts.offsets
        whole = record_features(view, mode=mode)
        some = record_features(evidence.among(references, model=model, records=records), mode=mode, usual=usual)
        names = {"base", "own_from_outside"} | ({"ratio", "own_ratio"} if mode == "online" else set())
        assert {f"parts_{name}" for name in names} == {name for name in whole if name.startswith("parts_")}
        for name in names:
            by_hand = [every[name][start:stop].sum() for start, stop in itertools.pairwise(ends)]
            np.testing.assert_allclose(whole[f"parts_{name}"], by_hand, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(some[f"parts_{name}"], np.array(by_hand)[records], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("each", [False, True])
def test_what_parts_share_is_learned_from_some_records(each: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin is told which records; their numbers are close to those of all."""
    evidence = made(0, records=1100, models=8)
    references = np.arange(6)[:, None]
    if each:
        references = np.random.default_rng(0).permuted(np.tile(np.arange(8)[:, None], (1, 1100)), axis=0)[:6]
    whole = usual_of(evidence, references, mode="online")
    monkeypatch.setattr(parts, "_ENOUGH", 10)
    monkeypatch.setattr(stacked, "_FEW", 400)
    some = parts.enough_parts(evidence, least=400)
    found = usual_of(evidence, references, mode="online")
    assert len(some) == 400
    own = references[:, some] if each else references
    assert found.parts == usual_of(evidence.of_records(some), own, mode="online").parts
    assert (found.shift, found.sides) == (whole.shift, whole.sides)
    assert found.parts is not None
    assert whole.parts is not None
    assert found.parts != whole.parts
    for name, (variance, _) in whole.parts.sides.items():
        assert found.parts.sides[name][0] == pytest.approx(variance, rel=0.1)
