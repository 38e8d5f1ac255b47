"""The one call for graphs: from a graph and a way to train a GNN to a verdict."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch_geometric.data import Data
from torch_geometric.utils import contains_self_loops, is_undirected

from glasshouse.attacks import Attack
from glasshouse.attacks.choices import AttackChoice
from glasshouse.audit_steps import check_attacks, checked_rates, conclude, library_versions, run_each
from glasshouse.compute import Compute
from glasshouse.errors import InputError
from glasshouse.evaluation import AttackOutcome, PrivacyClaim
from glasshouse.evaluation.mixed_up import shared_nodes
from glasshouse.evaluation.thresholds import Policy
from glasshouse.evidence import Mode
from glasshouse.graph.attacks.attack import GraphAttack
from glasshouse.graph.attacks.chosen import chosen_graph_attacks
from glasshouse.graph.data.checking import check_graph
from glasshouse.graph.data.population import GraphPopulation
from glasshouse.graph.models.gnn import GNN
from glasshouse.graph.models.model import Model
from glasshouse.graph.rule.self_check import check_engine
from glasshouse.graph.rule.toggle.batching import shape_of
from glasshouse.graph.run import run_on_scene
from glasshouse.graph.scene import Scene
from glasshouse.graph.training.accuracy import node_accuracy
from glasshouse.graph.training.setting import Setting, check_setting, looks_transductive
from glasshouse.graph.training.trainer import GNNTrainer
from glasshouse.pool import ShadowPool
from glasshouse.pool.shadow_pool import described
from glasshouse.population import as_members, random_subsets
from glasshouse.progress import note_work, track
from glasshouse.randomness import seed_for
from glasshouse.report import Context, Surroundings
from glasshouse.result import AuditResult
from glasshouse.training.trainer import Trainer, check_trainer

__all__ = ["audit"]

DEFAULT_ATTACKS = ("base", "lira", "rmia", "classifier", "g-classifier", "g-base")


def audit(
    data: Data,
    *,
    model: Model | None = None,
    members: ArrayLike | None = None,
    trainer: Trainer | None = None,
    shadow_trainer: Trainer | None = None,
    attacks: Sequence[AttackChoice | GraphAttack] = DEFAULT_ATTACKS,
    shadows: int = 8,
    mode: Mode = "online",
    nodes: ArrayLike | None = None,
    known_graph: Data | None = None,
    setting: Setting = "inductive",
    fprs: Sequence[float] | None = None,
    prior: float | ArrayLike = 0.5,
    claim: PrivacyClaim | None = None,
    policy: Policy = "mean",
    fraction: float = 0.5,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    store: Path | str | None = None,
    compute: Compute | None = None,
    seed: int = 0,
    title: str = "Membership audit of a graph neural network",
    about: str = "",
    progress: bool | None = None,
) -> AuditResult:
    """Train shadow GNNs, attack the target, and measure which of its training nodes can be told from outside.

    Args:
        data: the graph: ``x`` [n, features], ``edge_index`` [2, edges], ``y`` [n], members and others.
        model: the target, ``(x, edge_index) -> logits`` or ``data -> logits``; a black box will do. None trains one on
            ``members``. A model that is given needs its ``members`` and the ``trainer`` that it was trained by.
        members: [n] who trained the target, for evaluation alone. Where no model is given, a random half by default.
        trainer: ``(data, members, seed) -> model``, as the target was trained; where no model is given, `GNNTrainer` by
            default.
        shadow_trainer: how the attacker trains, where it does not know how the owner did: another architecture or
            optimizer (the paper's mismatched adversary).
        attacks: i.i.d. attacks by name (they look at zero-hop queries), ``"g-base"``, ``"g-regressed"``,
            ``"g-classifier"``, objects, or mappings such as ``{"name": "g-base", "sampler": "gibbs"}``; ``"best"``
            picks one of either kind by simulated targets and says why.
        shadows: how many shadow models, in complementary pairs.
        mode: ``"online"`` or ``"offline"``, for the attacks given by name.
        nodes: ids of the nodes to audit; all by default.
        known_graph: the graph as the attacker knows it, such as `noisy_edges` of ``data``; ``data`` by default.
        setting: how training saw the graph: ``"inductive"``, the members and the edges between them alone; or
            ``"transductive"``, the whole graph with the members' labels, as in the usual Planetoid script. All queries
            are then of the whole graph, and attacks that toggle nodes are left out.
        fprs: wanted false-positive rates; by default 1 % and 0.1 %, those that the sample can resolve.
        prior: λ, the share of members that the attacker expects: one number, or one a node.
        claim: a stated (ε, δ) to judge.
        policy: ``"mean"`` or the careful ``"max"`` of the simulated targets' thresholds.
        fraction: share of nodes that trains a shadow model.
        ids: [n] names of the nodes.
        store: the shadow pool's folder: models found there are not trained again. None keeps no model.
        compute: where shadow models are trained: `ThisProcess`, `LocalProcesses` or `RayCluster`.
        seed: of every random choice.
        title: of the report.
        about: a sentence on the data, shown beside the figures.
        progress: whether to show bars; by default on a terminal only.

    Example:
        >>> from glasshouse.graph import citation_graph
        >>> data = citation_graph(nodes=120, classes=3)
        >>> trainer = GNNTrainer(hidden=8, epochs=5, device="cpu")
        >>> result = audit(data, trainer=trainer, attacks=["base"], shadows=2)
        >>> result.table()["attack"]
        array(['base'], dtype='<U4')
    """
    check_graph(data, labelled=True)
    check_setting(setting)
    count = int(data.num_nodes)
    owner = _owner(data, model, members, trainer, setting)
    if members is None:
        members = random_subsets(count, models=1, fraction=0.5, seed=seed)[0]
    truth = as_members(members, (count,), place="members")
    seen = data if known_graph is None else known_graph
    # a first scene without models checks nodes and ids before the long work
    scene = Scene(seen, _nobody, [], np.empty((0, count), dtype=np.bool_), nodes=nodes, truth=truth, ids=ids)
    wanted = checked_rates(fprs, truth[scene.nodes])
    if shadow_trainer is not None:
        check_trainer(shadow_trainer, place="shadow_trainer")
    made, left_out = chosen_graph_attacks(
        attacks, setting=setting, nodes=scene.nodes, mode=mode, prior=prior, seed=seed, fprs=wanted
    )
    pool = ShadowPool.plan(
        seen, shadow_trainer or owner, shadows=shadows, fraction=fraction, seed=seed, store=store, compute=compute
    )
    check_attacks(made, pool.members[:, scene.nodes])
    began = time.perf_counter()
    if pool.store is not None:
        pool.train(progress=progress)
    stored = time.perf_counter() - began
    if model is None:
        note_work("The target was being trained.")
    target = owner(data, truth, seed_for(seed, "target")) if model is None else model
    started = time.perf_counter()
    trained = list(track(pool, total=len(pool), label="Shadow models", unit="models", show=progress))
    spent = stored + time.perf_counter() - started
    scene = Scene(seen, target, trained, pool.members, nodes=nodes, truth=truth, ids=ids, setting=setting)
    evidence = scene.record_evidence  # before anything is toggled: answers that are no logits are named here
    toggling = any(isinstance(attack, GraphAttack) and attack.toggles for attack in made.values())
    checked = check_engine(scene, seed=seed).sentence() if toggling else "no attack of this audit toggles nodes"
    digests = GraphPopulation(data).digests()
    context = Context(
        title=title,
        about=" ".join([about, *_oddities(data)]).strip(),
        shadows=shadows,
        mode=mode,
        seed=seed,
        train_accuracy=node_accuracy(target, data, truth, setting=setting),
        test_accuracy=node_accuracy(target, data, ~truth, setting=setting),
        fingerprint=GraphPopulation(data).fingerprint(),
        shadow_seconds=spent,
        settings={
            "trainer": described(owner),
            "shadow trainer": "as the target's" if shadow_trainer is None else described(shadow_trainer),
            "setting": setting,
            "attacker's graph": "the owner's" if known_graph is None else GraphPopulation(seen).fingerprint(),
            "prior": prior if np.ndim(prior) == 0 else f"one for each of {np.size(prior)} nodes",
            "training share": fraction,
            "threshold policy": policy,
            "engine": checked,
        },
        versions=library_versions("torch-geometric", "numba"),
        warnings=_doubts(scene, owner if shadow_trainer is None else shadow_trainer, data, model),
        notes=(*scene.notes, *shared_nodes(digests[scene.nodes], truth[scene.nodes])),
    )

    def run(attack: Attack | GraphAttack) -> AttackOutcome:
        return run_on_scene(attack, scene, fprs=wanted, policy=policy, progress=progress)

    outcomes, failed = run_each(made, run)
    found = conclude(
        evidence,
        outcomes,
        members=truth[scene.nodes],
        labels=data.y.cpu().numpy()[scene.nodes],
        fprs=wanted,
        context=context,
        claim=claim,
        left_out=left_out | failed,
    )
    around = Surroundings(data.edge_index.cpu().numpy(), members=truth, labels=data.y.cpu().numpy(), nodes=scene.nodes)
    return dataclasses.replace(found, surroundings=around)


def _owner(data: Data, model: Model | None, members: Any, trainer: Trainer | None, setting: Setting) -> Trainer:
    """The trainer of the target, where what is given belongs together."""
    if model is not None and members is None:
        raise InputError(
            "members: missing; a model that is given needs to be told who trained it. Pass members=mask, one True or "
            "False per node."
        )
    if trainer is None:
        ours = GNNTrainer(setting=setting)
        if model is not None and not (type(model) is GNN and shape_of(model) == shape_of(ours.untrained(data))):
            raise InputError(
                "trainer: missing; shadow models must be trained as the given model was. Pass "
                "trainer=GNNTrainer(model=MyNet, epochs=…), or a function (data, members, seed) -> model."
            )
        return ours
    check_trainer(trainer)
    if isinstance(trainer, GNNTrainer) and trainer.setting != setting:
        raise InputError(
            f'setting: the audit says "{setting}", but the trainer trains in the {trainer.setting} setting. Say '
            f'setting="{trainer.setting}" to audit, or GNNTrainer(setting="{setting}").'
        )
    return trainer


def _doubts(scene: Scene, trainer: Trainer, data: Data, model: Model | None) -> tuple[str, ...]:
    """Whether models that are not trained by us look as if they had been trained in another setting."""
    if scene.setting == "transductive" or isinstance(trainer, GNNTrainer):
        return ()
    if not looks_transductive(scene.shadows, scene.data, scene.shadow_members):
        return ()
    return (
        "All shadow models fit their members better in the whole graph than in the graph of the members alone, so they "
        "seem to have been trained on the whole graph with a mask. The audit takes them as inductive, and its figures "
        'are then wrong: say setting="transductive".',
    )


def _oddities(data: Data) -> list[str]:
    """What is unusual about the edges, said once; all of it is handled as PyTorch Geometric's layers do."""
    edges = data.edge_index
    found = []
    if contains_self_loops(edges):
        found.append(f"{int((edges[0] == edges[1]).sum())} self-loops")
    if (repeated := edges.shape[1] - torch.unique(edges, dim=1).shape[1]) > 0:
        found.append(f"{repeated} repeated edges")
    if not is_undirected(edges, num_nodes=data.num_nodes):
        found.append("edges in one direction only")
    return [f"The graph has {' and '.join(found)}, handled as PyTorch Geometric does."] if found else []


def _nobody(x: Any, edge_index: Any, /) -> Any:
    raise AssertionError("the scene without models is only checked, never asked")
