"""What is checked, measured or lowered once is carried: counted in one small audit, and in one question of a scene."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch

import glasshouse
from glasshouse.graph import GNNTrainer, Scene, audit, build_gnn, citation_graph, toggle_losses
from glasshouse.graph.models.profile import Profiled
from glasshouse.graph.rule.incremental import engine
from glasshouse.graph.rule.incremental.program import lower

ROOT = f"{Path(glasshouse.__file__).parent}/"
DATA = citation_graph(nodes=120, classes=3)


def calls_of(work: Callable[[], Any]) -> Counter[tuple[str, str]]:
    """How often each function of ours is entered, by module and name."""
    found: Counter[tuple[str, str]] = Counter()
    before = sys.getprofile()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            found[frame.f_code.co_filename.removeprefix(ROOT), frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


def test_an_audit_of_five_models_checks_its_graph_once_and_profiles_each_model_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The audit asks seven questions: a check of the engine, the target, four simulated targets and the flagged one."""
    stacks: list[tuple[Profiled, ...]] = []

    def counted(models: Sequence[Profiled], question: Any, **options: Any) -> Any:
        stacks.append(tuple(models))
        return lower(models, question, **options)

    monkeypatch.setattr(engine, "lower", counted)
    trainer = GNNTrainer(hidden=8, epochs=5, device="cpu")
    calls = calls_of(lambda: audit(DATA, trainer=trainer, attacks=["g-base"], shadows=4, progress=False))
    assert calls["graph/data/checking.py", "graph_faults"] == 1
    assert calls["graph/models/profile.py", "_tried"] == 5
    assert calls["graph/programs/reach.py", "checked_program"] == 1  # the five models have one shape
    assert calls["graph/programs/trace.py", "traced"] == 5 + 1  # each model, and the training in one pass
    assert calls["graph/rule/question.py", "ask"] == 7
    # each stack of models is lowered once: the check of the engine and the target share theirs
    assert len(stacks) == len(set(stacks)) == 6


@pytest.mark.parametrize(
    ("architecture", "layers", "most"), [("gcn", 2, 23), ("gcn", 3, 22), ("gat", 2, 25), ("sage", 2, 23)]
)
def test_a_question_of_a_scene_visits_few_modules(architecture: str, layers: int, most: int) -> None:
    """As many as today once the models are known, and never more than 25; the first question profiles them too."""
    models = [build_gnn(architecture, features=DATA.num_features, hidden=8, classes=3, layers=layers) for _ in range(5)]
    random = np.random.default_rng(0)
    scene = Scene(DATA, models[0], models[1:], random.random((4, 120)) < 0.5)
    masks = random.random((2, 120)) < 0.5
    first, again = ({module for module, _ in calls_of(lambda m=m: scene.toggled(m))} for m in (masks, ~masks))  # type: ignore[misc]
    assert {"graph/scene.py", "graph/rule/toggling.py", "graph/rule/incremental/engine.py"} <= again < first
    assert len(again) <= most <= 25, sorted(again)


def test_a_door_profiles_what_it_is_given_each_time_so_that_nothing_is_known_by_chance() -> None:
    models = [build_gnn("gcn", features=DATA.num_features, hidden=4, classes=3)]
    masks, nodes = np.ones((1, 120), dtype=np.bool_), np.arange(3)
    ask = lambda: toggle_losses(models, DATA, torch.from_numpy(masks), torch.from_numpy(nodes))  # noqa: E731
    assert [calls_of(ask)["graph/models/profile.py", "_tried"] for _ in range(2)] == [1, 1]
