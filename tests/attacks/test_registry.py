from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import pytest

from glasshouse import Evidence, InputError
from glasshouse.attacks import BASE, Attack, attack_names, create, register
from glasshouse.attacks import attack as rooms
from glasshouse.core.arrays import FloatArray
from tests.strategies import gaussian_evidence


def test_every_attack_can_be_made_by_name() -> None:
    known = "base base-tempered bavaria calibration classifier lira loss attack-r regressed rmia shrunk-lira stacked"
    assert set(known.split()) <= set(attack_names())
    for name in attack_names():
        attack = create(name, shared={"mode": "offline", "prior": 0.3, "seed": 1})
        assert isinstance(attack, Attack)
        assert attack.name == name
        assert getattr(attack, "mode", "offline") == "offline"


def test_an_unknown_name_and_an_unknown_parameter_say_what_is_known() -> None:
    with pytest.raises(InputError, match='"rmai" is not an attack. Did you mean "rmia"\\? Known: base'):
        create("rmai")
    with pytest.raises(InputError, match="'gama' is not a parameter of it. Known: mode, gamma, offline_a"):
        create("rmia", gama=2)
    with pytest.raises(InputError, match="'fit_' is not a parameter of it. Known: mode, prior, folds, seed"):
        create("regressed", fit_=None)  # learned, not chosen


def test_a_users_own_attack_is_registered_by_a_decorator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "_ATTACKS", copy.deepcopy(rooms._ATTACKS))

    @register("guess")
    @dataclass(frozen=True, kw_only=True)
    class Guess(Attack):
        def score(self, evidence: Evidence) -> FloatArray:
            return -evidence.target_loss

    assert isinstance(create("guess"), Guess)


def test_simulated_scores_are_those_of_every_simulated_target() -> None:
    evidence, _ = gaussian_evidence(records=30, models=6, shift=1.0, seed=0)
    found = list(BASE().simulated_scores(evidence))
    for (scores, members), target in zip(found, evidence.simulated(), strict=True):
        assert np.allclose(scores, BASE().score(target.view), rtol=1e-12, atol=0)  # summed up in another way
        assert (members == target.members).all()
