"""Run an attack on a scene: score the target, estimate thresholds from simulated targets, evaluate."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence

from glasshouse.attacks import Attack
from glasshouse.errors import InputError
from glasshouse.evaluation import AttackOutcome, Threshold, evaluate, run_attack
from glasshouse.evaluation.best import Scored
from glasshouse.evaluation.outcome import no_threshold
from glasshouse.evaluation.thresholds import Policy, thresholds_from
from glasshouse.graph.attacks.attack import GraphAttack
from glasshouse.graph.best import GraphBest
from glasshouse.graph.scene import Scene
from glasshouse.progress import showing, track

__all__ = ["run_on_scene"]


def run_on_scene(
    attack: Attack | GraphAttack,
    scene: Scene,
    *,
    fprs: Sequence[float],
    policy: Policy = "mean",
    confidence: float = 0.95,
    progress: bool | None = False,
    simulated: Scored | None = None,
) -> AttackOutcome:
    """One attack against one target on a graph; attacks on records look at the scene's evidence for them.

    Args:
        attack: of either kind; `GraphBest` picks one first, and the outcome is of that one.
        scene: what it looks at. Its ``truth`` evaluates the scores and reaches no attack but the sampler of that name.
        fprs: wanted false-positive rates.
        policy: ``"mean"`` or ``"max"`` of the simulated targets' thresholds.
        confidence: of every interval.
        progress: whether to show a bar.
        simulated: scores of the simulated targets and who trained them, where they are already there.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from glasshouse.attacks import BASE
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> scene = Scene(data, lambda x, edges: 2 * x, [lambda x, edges: x - 1], [[1, 0]])
        >>> run_on_scene(BASE(), scene, fprs=[]).scores.round(3)
        array([0.546, 0.546])
    """
    if isinstance(attack, GraphBest):
        began = time.perf_counter()
        pick = attack.pick(scene)
        picking = time.perf_counter() - began
        outcome = run_on_scene(
            pick.attack, scene, fprs=fprs, policy=policy, confidence=confidence, simulated=pick.simulated
        )
        note = " ".join([pick.reason, outcome.note]).strip()
        return dataclasses.replace(outcome, note=note, seconds=picking + outcome.seconds)
    members = None if scene.truth is None else scene.truth[scene.nodes]
    if isinstance(attack, Attack):
        evidence = scene.record_evidence
        return run_attack(
            attack,
            evidence,
            fprs=fprs,
            members=members,
            policy=policy,
            confidence=confidence,
            progress=progress,
            simulated=simulated,
        )
    started = time.perf_counter()
    with showing(progress):
        attack = attack.tuned(scene)
        scores, details, queries, note = attack.judge(scene)
    seconds = time.perf_counter() - started
    thresholds: tuple[Threshold, ...] = ()
    if simulated is not None:
        thresholds = thresholds_from(simulated, fprs, policy=policy, confidence=confidence)
    elif fprs:
        try:
            thresholds = _thresholds(attack, scene, fprs, policy=policy, confidence=confidence, progress=progress)
        except InputError as error:  # the target could be scored, so only the thresholds are missing
            note = f"{note} {no_threshold(attack.name, error)}".strip()
    metrics = None if members is None else evaluate(scores, members, fprs=fprs, confidence=confidence)
    return AttackOutcome(attack, scores, thresholds, metrics, seconds, note, details, queries)


def _thresholds(
    attack: GraphAttack,
    scene: Scene,
    fprs: Sequence[float],
    *,
    policy: Policy,
    confidence: float,
    progress: bool | None,
) -> tuple[Threshold, ...]:
    scored = list(
        track(
            attack.simulated_scores(scene),
            total=len(scene.shadows),
            label=f"Thresholds of {attack.name}",
            unit="targets",
            show=progress,
        )
    )
    return thresholds_from(scored, fprs, policy=policy, confidence=confidence)
