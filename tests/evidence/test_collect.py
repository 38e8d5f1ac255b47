from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from glasshouse import Population, SklearnTrainer
from glasshouse.core.arrays import BoolArray
from glasshouse.evidence import QueryOptions, collect, query
from glasshouse.pool import ShadowPool
from glasshouse.query.adapters import KeptAnswers
from glasshouse.query.classify import Answers

POPULATION = Population(np.arange(8.0).reshape(-1, 1), [0, 1] * 4, ids=list("abcdefgh"))


def by_heart(population: Population, members: BoolArray, seed: int) -> Any:
    """A model that is sure of its members and knows nothing of the others."""
    sure = np.where(population.y == 1, 9.0, -9.0) * members
    return lambda x: sure[x[:, 0].astype(int)]


def test_each_models_losses_stand_in_its_own_row() -> None:
    pool = ShadowPool.plan(POPULATION, by_heart, shadows=4)
    evidence, answers = collect(by_heart(POPULATION, pool.members[0], 0), pool, how=QueryOptions(keep_logits=True))
    assert ((evidence.shadow_loss < 0.1) == pool.members).all()
    assert (evidence.target_loss == evidence.shadow_loss[0]).all()
    assert evidence.ids.tolist() == list("abcdefgh")
    assert evidence.shadow_logits is not None
    assert evidence.shadow_logits.shape == (4, 8, 2)
    assert isinstance(answers, Answers)
    assert answers.loss is evidence.target_loss or (answers.loss == evidence.target_loss).all()


def test_one_model_is_alive_at_a_time() -> None:
    import weakref

    alive: list[weakref.ref[Any]] = []

    class Model:
        def __call__(self, x: np.ndarray) -> np.ndarray:
            return np.zeros(len(x))

    def train(population: Population, members: BoolArray, seed: int) -> Any:
        assert sum(ref() is not None for ref in alive) <= 1  # the one that is about to be let go
        model = Model()
        alive.append(weakref.ref(model))
        return model

    collect(Model(), ShadowPool.plan(POPULATION, train, shadows=6))
    assert len(alive) == 6


RANDOM = np.random.default_rng(0)
LABELS = RANDOM.integers(3, size=120)
SOME = Population(RANDOM.normal(size=(120, 4)) + LABELS[:, None], LABELS)


class OwnForest(RandomForestClassifier):  # type: ignore[misc]
    """A type that is nobody's we know, so that a pool keeps its answers."""


def forests(trees: int, kind: type = RandomForestClassifier) -> SklearnTrainer:
    return SklearnTrainer(estimator=kind(trees))


def test_votes_are_clipped_half_a_vote_from_certainty_for_all_models_alike() -> None:
    pool = ShadowPool.plan(SOME, forests(20), shadows=4)
    evidence, answers = collect(forests(20)(SOME, pool.members[0], 1), pool, how=QueryOptions(keep_logits=True))
    assert isinstance(answers, Answers)
    for loss in (evidence.target_loss, evidence.shadow_loss, answers.loss):
        assert loss.min() == pytest.approx(-np.log(0.975))
        assert loss.max() <= -np.log(0.025) + 1e-12
    assert evidence.shadow_loss.max() == pytest.approx(-np.log(0.025))
    assert evidence.notes == (
        "The model gives exact 0 and 1 and nothing closer to them than 0.05, so confidences are clipped to between "
        "0.025 and 0.975.",
    )
    assert evidence.target_logits is not None
    assert np.exp(evidence.target_logits).min() == pytest.approx(0.025)


def test_a_target_of_another_kind_is_clipped_as_its_references_are() -> None:
    pool = ShadowPool.plan(SOME, forests(10), shadows=4)
    smooth = LogisticRegression(C=1e3, max_iter=2000).fit(SOME.x, SOME.y)
    evidence, _ = collect(smooth, pool)
    assert evidence.target_loss.min() >= -np.log(0.95) - 1e-12
    assert evidence.notes[0].startswith("The shadow models give exact 0 and 1 and nothing closer to them than 0.1")


def test_networks_and_regressions_are_not_clipped() -> None:
    trainer = SklearnTrainer(estimator=LogisticRegression(C=1e3, max_iter=2000))
    pool = ShadowPool.plan(SOME, trainer, shadows=2)
    target = trainer(SOME, pool.members[0], 0)
    evidence, _ = collect(target, pool)
    assert (evidence.target_loss == query(target, SOME).loss).all()
    assert evidence.notes == ()


def test_kept_answers_are_clipped_like_the_models_that_gave_them(tmp_path: Path) -> None:
    plain = ShadowPool.plan(SOME, forests(15, OwnForest), shadows=4)
    kept = ShadowPool.plan(SOME, forests(15, OwnForest), shadows=4, folder=tmp_path / "pool")
    kept.train(progress=False)
    assert any(isinstance(model, KeptAnswers) for model in kept)
    target = forests(15)(SOME, plain.members[0], 1)
    (first, _), (second, _) = collect(target, plain), collect(target, kept)
    np.testing.assert_allclose(second.shadow_loss, first.shadow_loss, rtol=1e-12)
    assert second.notes == first.notes != ()


def test_shadow_models_that_give_probabilities_are_named() -> None:
    def soft(population: Population, members: BoolArray, seed: int) -> Any:
        return lambda x: np.exp(x[:, :3]) / np.exp(x[:, :3]).sum(axis=1, keepdims=True)

    evidence, _ = collect(lambda x: x[:, :3], ShadowPool.plan(SOME, soft, shadows=2))
    np.testing.assert_allclose(evidence.shadow_loss[0], evidence.target_loss)
    assert evidence.notes[0].startswith("Shadow models answer with probabilities")
