from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from glasshouse.attacks import BASE
from glasshouse.evaluation import auc
from glasshouse.evidence import Mode
from glasshouse.graph import GStacked
from glasshouse.graph.attacks.stacking.learn import Untrained, best_untrained
from glasshouse.graph.attacks.stacking.pool_signals import PlainAnswers, PoolSignals, ask_pool
from tests.graph.scenes import trained_scene


def pool_of(mode: Mode = "online") -> PoolSignals:
    scene = trained_scene(shadows=8)
    return ask_pool(scene, GStacked(mode=mode, samples=(2,), targets=8, sampled_models=8))


def quality(attack: Untrained, pool: PoolSignals) -> float:
    """Mean AUC over simulated targets, each by the models other than itself and its complement."""
    pairs = zip(pool.plan.targets.tolist(), pool.plan.references, strict=True)
    found = [(k, pool.target_signals(*pool.of_shadow(k), rows[:, 0])) for k, rows in pairs]
    return float(np.mean([auc(attack.log_odds(signals), pool.members[k]) for k, signals in found]))


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_the_attack_that_tells_simulated_targets_better_is_taken(mode: Mode) -> None:
    pool = pool_of(mode)
    taken = best_untrained(pool)
    other = dataclasses.replace(taken, neighbours=not taken.neighbours)
    assert quality(taken, pool) >= quality(other, pool)


def test_neighbours_are_asked_where_a_node_alone_tells_nothing() -> None:
    pool = pool_of()
    silent = np.ones_like(pool.plain.alone)
    assert best_untrained(dataclasses.replace(pool, plain=PlainAnswers(silent, pool.plain.whole))).neighbours


def test_it_is_base_on_zero_hop_evidence() -> None:
    scene, pool = trained_scene(shadows=8), pool_of()
    k = int(pool.plan.targets[0])
    signals = pool.target_signals(*pool.of_shadow(k), np.arange(8))
    found = Untrained(base=BASE()).log_odds(signals)
    wanted = dataclasses.replace(scene.zero_hop, target_loss=scene.zero_hop.shadow_loss[k])
    assert found == pytest.approx(BASE().log_odds(wanted), abs=1e-5)
