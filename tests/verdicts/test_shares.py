"""What the note about unlike targets advises must work: a pool with the target's own share of the records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from glasshouse import Attacker, Evaluation, InputError, Population, audit
from glasshouse.attacks import Stacked
from glasshouse.attacks.learners import Boosted
from glasshouse.data import random_subsets
from glasshouse.graph import GNNTrainer, GStacked, citation_graph
from glasshouse.graph import audit as graph_audit
from glasshouse.training import SklearnTrainer

SMALL = Boosted(rounds=5, fits=1, leaves=7)


def population() -> Population:
    random = np.random.default_rng(0)
    return Population(random.normal(size=(300, 4)), random.integers(2, size=300))


@pytest.mark.parametrize("share", [0.1, 0.2, 0.8, 0.9])
def test_stacked_and_best_take_pools_of_small_and_large_shares(share: float) -> None:
    members = random_subsets(300, models=1, fraction=share, seed=3)[0]
    result = audit(
        population(),
        members=members,
        trainer=SklearnTrainer(estimator=DecisionTreeClassifier(max_depth=4)),
        attacks=[Stacked(prior=share, boosted=SMALL), {"name": "best", "candidates": ["base", "rmia", "lira"]}],
        shadows=8,
        attacker=Attacker(fraction=share, prior=share),
        evaluation=Evaluation(fprs=[0.05]),
        progress=False,
    )
    assert not result.left_out
    assert np.isfinite(result.outcomes["stacked"].scores).all()


def test_what_such_a_pool_lacks_is_said_before_training_with_what_to_do() -> None:
    trainings = []

    def trainer(population: Population, members: np.ndarray, seed: int) -> None:
        trainings.append(seed)

    given: dict[str, Any] = {"trainer": trainer, "members": np.arange(300) < 30, "shadows": 8, "progress": False}
    with pytest.raises(InputError, match=r"in-models.*larger share \(fraction\), or mode offline"):
        audit(population(), **given, attacks=["lira"], attacker=Attacker(fraction=0.1))
    with pytest.raises(InputError, match=r"out-model.*smaller share \(fraction\)"):
        audit(population(), **given, attacks=["lira"], mode="offline", attacker=Attacker(fraction=0.9))
    with pytest.raises(InputError, match=r"out-model.*smaller share \(fraction\), or mode online"):
        audit(population(), **given, attacks=["stacked"], mode="offline", attacker=Attacker(fraction=0.9))
    assert not trainings


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_the_default_of_graphs_takes_them_too(share: float) -> None:
    """Some nodes have no in-model, or no out-model, among the references of a simulated target."""
    result = graph_audit(
        citation_graph(nodes=120, classes=3, seed=0),
        trainer=GNNTrainer(hidden=4, epochs=5, device="cpu"),
        attacks=[GStacked(prior=share, samples=(2, 2), boosted=SMALL)],
        shadows=6,
        attacker=Attacker(fraction=share, prior=share),
        evaluation=Evaluation(fprs=[0.1]),
        progress=False,
    )
    assert not result.left_out
    assert np.isfinite(result.outcomes["g-stacked"].scores).all()
