"""benchmarks/paper/tempered.py and mismatch_range.py: the formulas, and a small run of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from glasshouse.attacks import BASE
from glasshouse.graph import GBASE
from glasshouse_experiments.bench import Bench
from glasshouse_experiments.settings import SETTINGS, Preset
from tests.benchmarks.scripts import benchmark


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    preset = Preset(targets=2, datasets=("synthetic",), epochs=0.2)
    folder = tmp_path_factory.mktemp("pools")
    return Bench(setting=SETTINGS.find("synthetic"), preset=preset, folder=folder, progress=False)


def test_without_temperature_and_ratio_the_scores_are_those_of_the_attacks(bench: Bench) -> None:
    script, scene = benchmark("tempered"), next(iter(bench.scenes()))
    base = script.scores(script.signals(scene, "online", graph=False, seed=0), 1.0, 0.0)
    np.testing.assert_allclose(expit(base), BASE().score(scene.evidence), atol=1e-12)
    for mode in ("online", "offline"):
        graph = script.scores(script.signals(scene, mode, graph=True, seed=0), 1.0, 0.0)
        np.testing.assert_allclose(graph, GBASE(mode=mode, sampler="mia").score(scene), atol=1e-12)


def test_what_the_target_is_surer_of_does_not_depend_on_labels(bench: Bench) -> None:
    script, scene = benchmark("tempered"), next(iter(bench.scenes()))
    surer = script.signals(scene, "online", graph=False, seed=0).surer
    answered = scene.zero_hop
    assert answered.target_logits is not None
    assert answered.shadow_logits is not None
    logits = answered.target_logits[scene.nodes]
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    own = (probabilities * np.log(probabilities)).sum(axis=1)
    others = np.exp(answered.shadow_logits[:, scene.nodes])
    others /= others.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(surer, own - (others * np.log(others)).sum(axis=2).mean(axis=0), atol=1e-6)


def test_the_choice_is_the_best_on_simulated_targets_and_1_and_0_where_nothing_helps() -> None:
    script = benchmark("tempered")
    random = np.random.default_rng(0)
    truth = np.arange(200) % 2 == 0
    own, others = random.normal(size=(1, 200)), random.normal(size=(4, 1, 200))
    surer = truth + 0.1 * random.normal(size=200)  # the label-free part alone tells members
    found = script.Signals(own, others, None, surer)
    temperature, weight = script.tuned([(found, truth)], "AUC", script.LAMBDAS)
    assert weight == max(script.LAMBDAS)
    assert script.figure("AUC", script.scores(found, temperature, weight), truth) > 90
    flat = script.Signals(np.zeros((1, 200)), np.zeros((4, 1, 200)), None, np.zeros(200))
    assert script.tuned([(flat, truth)], "AUC", script.LAMBDAS) == (1.0, 0.0)


def test_a_range_is_of_settings_chosen_by_accuracy_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = benchmark("mismatch_range")
    grid = {"learning_rate": (0.1,), "weight_decay": (1e-5,), "dropout": (0.5,), "epochs": (2, 30)}
    monkeypatch.setattr(script, "GRID", grid)
    monkeypatch.setattr(script, "_GAP", -1.0)
    rows = script.kept_settings("synthetic", splits=1, seed=0)
    best = max(row["test_accuracy"] for row in rows)
    assert rows
    assert all(row["test_accuracy"] >= best - 0.01 for row in rows)
    cells = script.attacked("synthetic", rows[:1], targets=1, folder=tmp_path)
    assert "offline 4 G-BASE (MIA)|auc_pct" in cells
    assert all(len(means) == 1 for means in cells.values())
    known = {"cora": {"settings": rows, "tried": 2, "targets": 1, "cells": {"online 8 BASE|auc_pct": [70.0, 71.0]}}}
    assert "| Cora | BASE, online, auc_pct | 70.00 | 71.00 | 73.86 | 1.02 | no |" in script.page(known)
