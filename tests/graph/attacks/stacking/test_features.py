from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.special import logit

from glasshouse.attacks import BASE
from glasshouse.core.arrays import BoolArray
from glasshouse.graph import GBASE, Scene
from glasshouse.graph.attacks.stacking.features import (
    SIGNALS,
    GraphContext,
    SampledAnswers,
    TargetSignals,
    node_features,
    plain_features,
)
from glasshouse.graph.attacks.stacking.pool_signals import sampled_answers, without_signals
from tests.graph.scenes import trained_scene


def signals_of(scene: Scene, masks: BoolArray) -> TargetSignals:
    found = sampled_answers(scene.models, scene.data, masks)
    members = scene.shadow_members
    return TargetSignals(
        alone=scene.zero_hop,
        whole=scene.whole_graph,
        target=found.of([0]),
        references=found.of(range(1, len(scene.models))),
        members=members,
        posterior=np.linspace(-1, 1, len(members[0])),
    )


def test_the_features_are_base_and_g_base_themselves() -> None:
    scene = trained_scene()
    masks = np.random.default_rng(0).random((3, 240)) < 0.5
    found = node_features(signals_of(scene, masks), GraphContext.of(scene.data), mode="online")
    assert found["alone base"] == pytest.approx(logit(BASE().score(scene.zero_hop)), rel=1e-4, abs=1e-4)
    assert found["g-base"] == pytest.approx(GBASE(sampler=lambda scene, request: masks, samples=3).score(scene))
    assert all(value.shape == (240,) and np.isfinite(value).all() for value in found.values())


def test_offline_a_node_is_judged_by_its_out_models_answers_alone() -> None:
    """Change all that in-models answer about a node: its features stay; only its neighbours' beliefs move."""
    scene = trained_scene()
    signals = signals_of(scene, np.random.default_rng(0).random((3, 240)) < 0.5)
    who = signals.members
    changed = dataclasses.replace(
        signals,
        alone=dataclasses.replace(signals.alone, shadow_loss=np.where(who, 9.0, signals.alone.shadow_loss)),
        whole=dataclasses.replace(signals.whole, shadow_loss=np.where(who, 9.0, signals.whole.shadow_loss)),
        references=SampledAnswers(*(np.where(who[:, None, :], 9.0, values) for values in signals.references)),
    )
    context = GraphContext.of(scene.data)
    first, second = (node_features(one, context, mode="offline") for one in (signals, changed))
    assert all((first[name] == second[name]).all() for name in first)
    assert "gain over inside" not in first


def test_gains_and_neighbours_are_means_written_out() -> None:
    scene = trained_scene()
    signals = signals_of(scene, np.random.default_rng(0).random((3, 240)) < 0.5)
    context = GraphContext.of(scene.data, kin=False)
    found = node_features(signals, context, mode="online")
    edges = {(int(a), int(b)) for a, b in scene.data.edge_index.T.tolist() if a != b}
    for v in range(0, 240, 7):
        answers: dict[bool, list[float]] = {True: [], False: []}
        for who, gain in zip(signals.members[:, v], signals.references.gain[:, v], strict=True):
            answers[bool(who)].append(float(gain))
        for name, inside in (("gain over inside", True), ("gain over outside", False)):
            expected = signals.target.gain[0, v] - sum(answers[inside]) / len(answers[inside])
            assert found[name][v] == pytest.approx(expected)
        near = [found["g-base"][a] for a, b in edges if b == v]
        assert found["neighbours' g-base"][v] == pytest.approx(sum(near) / len(near) if near else 0.5)


def test_every_feature_goes_with_some_signal() -> None:
    scene = trained_scene()
    found = node_features(signals_of(scene, np.ones((1, 240), dtype=bool)), GraphContext.of(scene.data), mode="online")
    assert without_signals(found, SIGNALS) == {}
    for signal in SIGNALS:
        assert 0 < len(without_signals(found, [signal])) < len(found)
    assert list(without_signals(found, ["kin"])) == [name for name in found if not name.endswith(" kin")]


def test_several_targets_have_the_same_features_as_each_alone() -> None:
    """Kin are asked about all of them at once; what does not depend on samples is not asked again in a later round."""
    scene = trained_scene()
    signals, context = signals_of(scene, np.ones((1, 240), dtype=bool)), GraphContext.of(scene.data)
    pairs = [(signals.alone, signals.whole), (signals.whole, signals.alone)]
    together = plain_features(pairs, context, mode="online")
    for found, pair in zip(together, pairs, strict=True):
        alone = plain_features([pair], context, mode="online")[0]
        assert list(found) == list(alone)
        for name, values in found.items():
            assert values == pytest.approx(alone[name], abs=1e-3)
    whole = node_features(signals, context, mode="online")
    again = node_features(dataclasses.replace(signals, plain=together[0]), context, mode="online")
    assert list(whole) == list(again)
    assert again["alone kin"] is together[0]["alone kin"]
