from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from glasshouse.attacks.learners import Boosted, Network
from glasshouse.compute import ThisProcess
from glasshouse.graph import GStacked, citation_graph
from glasshouse.graph.attacks import g_stacked
from glasshouse.graph.attacks.stacking import pool_signals
from glasshouse.graph.attacks.stacking.pool_signals import ask_pool
from glasshouse_experiments.bench import Bench
from glasshouse_experiments.kept_scores import keep_scores
from glasshouse_experiments.lineup import gbase, singles
from glasshouse_experiments.measures import collected, ranking
from glasshouse_experiments.settings import SETTINGS, Preset


class Sent:
    """Stands for worker processes: what they are given is sent as bytes, and nothing comes back but files."""

    def __init__(self, *, workers: int) -> None:
        self.workers = workers

    def run(self, function: Any, shared: tuple[Any, ...], tasks: Any) -> Any:
        function, shared = cloudpickle.loads(cloudpickle.dumps((function, shared)))
        return ThisProcess().run(function, shared, tasks)


def test_targets_attacked_by_workers_have_the_scores_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glasshouse_experiments.bench.experiment_graph", lambda _: citation_graph(nodes=200))
    monkeypatch.setattr("glasshouse_experiments.bench.LocalProcesses", Sent)
    monkeypatch.setattr("glasshouse_experiments.bench._WORTH_WORKERS", 0.0)
    preset = Preset(targets=2, datasets=("synthetic",), epochs=0.05)
    alone = Bench(setting=SETTINGS.find("synthetic"), preset=preset, folder=tmp_path / "alone", progress=False)
    several = dataclasses.replace(alone, folder=tmp_path / "several", workers=2)
    attacks = singles(8) | gbase(8, {"G-BASE": "truth"})
    written: list[Path] = []

    def counted(path: Path, *rest: Any, **named: Any) -> None:
        written.append(path)
        keep_scores(path, *rest, **named)

    monkeypatch.setattr("glasshouse_experiments.bench.keep_scores", counted)
    one, two = (collected(bench.judged(attacks), ranking, table="", dataset="") for bench in (alone, several))
    assert one == two
    assert len(written) == len(set(written)) == 2 * 2 * len(attacks)  # the caller only reads what workers keep


def test_workers_are_not_started_for_little_work_nor_for_attacks_that_learn_once_for_all_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    class Counted(Sent):
        def run(self, function: Any, shared: tuple[Any, ...], tasks: Any) -> Any:
            _, job = shared
            started.append(len(job.attacks))
            return super().run(function, shared, tasks)

    monkeypatch.setattr("glasshouse_experiments.bench.experiment_graph", lambda _: citation_graph(nodes=200))
    monkeypatch.setattr("glasshouse_experiments.bench.LocalProcesses", Counted)
    preset = Preset(targets=2, datasets=("synthetic",), epochs=0.05)
    place = tmp_path / "pools"
    bench = Bench(setting=SETTINGS.find("synthetic"), preset=preset, folder=place, progress=False, workers=2)
    quick = singles(8)
    assert len(list(bench.judged(quick))) == 2
    assert started == []  # two targets take less time than the start of a process
    monkeypatch.setattr("glasshouse_experiments.bench._WORTH_WORKERS", 0.0)
    learner = GStacked(samples=(1,), targets=4, network=Network(epochs=1), boosted=Boosted(rounds=1))
    mixed = {**gbase(8, {"G-BASE": "independent"}), ("online", "8", "", "g-stacked"): learner}
    found = list(bench.judged(mixed))
    assert started == [len(mixed) - 1]  # all but the learner
    assert [set(one) for one in found] == [set(mixed)] * 2
    assert bench.training_seconds > 0


def test_on_a_large_graph_attacks_learn_once_about_the_nodes_of_all_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 20 000 nodes on, an attack learns for the audited ones; every target of a bench audits others."""
    monkeypatch.setattr(pool_signals, "TEACHING", 100)
    monkeypatch.setattr("glasshouse_experiments.bench.experiment_graph", lambda _: citation_graph(nodes=200))
    preset = Preset(targets=2, datasets=("synthetic",), epochs=0.05)
    bench = Bench(setting=SETTINGS.find("synthetic"), preset=preset, folder=tmp_path, progress=False)
    learner = GStacked(samples=(1,), targets=4, network=Network(epochs=1), boosted=Boosted(rounds=1))
    sampled = gbase(8, {"G-BASE": "stacked"})["offline", "4", "", "G-BASE"]
    asked: list[Any] = []

    def counted(*given: Any, **named: Any) -> Any:
        found = ask_pool(*given, **named)
        asked.append(found.asked)
        return found

    monkeypatch.setattr(g_stacked, "ask_pool", counted)
    small = lambda request: dataclasses.replace(learner, mode=request.mode, seed=request.seed)  # noqa: E731
    monkeypatch.setattr(g_stacked, "_attack", small)
    attacks = {("online", "8", "", "g-stacked"): learner, ("offline", "4", "", "G-BASE"): sampled}
    found = list(bench.judged(attacks))
    assert [set(one) for one in found] == [set(attacks)] * 2
    assert asked == [None, None]  # once by each attack, about all nodes
