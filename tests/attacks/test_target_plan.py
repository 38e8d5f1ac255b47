from __future__ import annotations

import numpy as np
import pytest

from glasshouse.attacks.cross_fit import plan_targets
from glasshouse.core.errors import InputError
from glasshouse.data import complementary_halves, random_subsets


def test_a_large_pool_is_sampled_in_whole_pairs_and_groups_keep_them_together() -> None:
    members = complementary_halves(40, models=64, seed=0)
    plan = plan_targets(members, targets=16, seed=0)
    assert len(plan.targets) == 16
    assert len(np.unique(plan.groups)) == 4
    for k, group, references in zip(plan.targets, plan.groups, plan.references, strict=True):
        partner = int(np.flatnonzero((members == ~members[k]).all(axis=1))[0])
        assert plan.groups[plan.targets.tolist().index(partner)] == group
        assert len(references) == 62
        assert k not in references
        assert partner not in references
    assert [len(panel) for panel in plan.panels] == [62] * 4


def test_a_small_pool_plays_in_full() -> None:
    plan = plan_targets(complementary_halves(40, models=6, seed=0), targets=16, seed=0)
    assert plan.targets.tolist() == [0, 1, 2, 3, 4, 5]
    assert len(plan.panels) == 3


def test_a_pool_without_pairs_holds_each_model_out_by_itself() -> None:
    plan = plan_targets(random_subsets(40, models=5, fraction=0.4, seed=0), targets=16, seed=0)
    assert len(plan.targets) == 5
    assert all(len(references) == 4 for references in plan.references)


def test_too_small_a_pool_is_refused() -> None:
    with pytest.raises(InputError, match="train 4 or more"):
        plan_targets(complementary_halves(10, models=2, seed=0), targets=16, seed=0)


@pytest.mark.parametrize(
    ("models", "enough", "wanted"), [(8, 320, 8), (8, 319, 4), (16, 639, 8), (16, 200, 5), (16, 40, 4), (6, 10, 6)]
)
def test_of_many_records_fewer_models_play_the_target(models: int, enough: int, wanted: int) -> None:
    """One of each pair, then fewer pairs; four groups stay, and a pool of fewer than four pairs plays in full."""
    members = complementary_halves(40, models=models, seed=0)
    plan = plan_targets(members, targets=16, seed=0, enough=enough)
    assert len(plan.targets) == wanted
    assert len(np.unique(plan.groups)) == min(4, models // 2)
    if wanted < models:
        assert len(set((plan.targets // 2).tolist())) == wanted  # no two of a pair
