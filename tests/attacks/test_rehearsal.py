from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from glasshouse import Evidence, InputError
from glasshouse.attacks import BASE, attack, attack_names, create
from glasshouse.attacks.attack import Attack, rehearse
from glasshouse.data import complementary_halves, random_subsets


@pytest.mark.parametrize("name", [name for name in attack_names(graph=False) if name not in ("best", "stacked")])
def test_every_attack_takes_a_pool_by_algorithm_1(name: str) -> None:
    create(name).check(complementary_halves(300, models=8, seed=0))


def test_an_attack_with_a_number_per_record_is_tried_on_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attack, "_ANSWERS", 100)
    members = complementary_halves(3000, models=4, seed=0)
    rehearse(BASE(prior=np.full(3000, 0.3)), members)
    with pytest.raises(InputError, match="prior"):
        rehearse(BASE(prior=np.full(7, 0.3)), members)


def test_of_very_many_records_those_at_the_edges_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """One record of 50 000 is in all models; a random choice of 1 000 would miss it."""
    monkeypatch.setattr(attack, "_ANSWERS", 100)
    members = random_subsets(50_000, models=8, fraction=0.5, seed=0)
    members[0, members.all(axis=0)] = False
    members[:, 777] = True
    with pytest.raises(InputError, match="record '777' has 0 out-models"):
        create("lira").check(members)


def test_an_attack_that_looks_at_what_is_not_made_up_is_left_to_the_true_evidence() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Curious(Attack):
        name = "curious"

        def score(self, evidence: Evidence) -> Any:
            return evidence.target_logits.max(axis=1)  # type: ignore[union-attr]

    Curious().check(complementary_halves(20, models=4, seed=0))
