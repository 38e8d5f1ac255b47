"""The one call for graphs: from a graph and a way to train a GNN to a verdict."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch_geometric.data import Data
from torch_geometric.utils import contains_self_loops, is_undirected

from glasshouse.attacks import Attack
from glasshouse.attacks.choices import AttackChoice, named_attacks
from glasshouse.audit import checked_rates, conclude, library_versions
from glasshouse.compute import Compute
from glasshouse.evaluation import PrivacyClaim
from glasshouse.evaluation.thresholds import Policy
from glasshouse.evidence import Mode
from glasshouse.graph.accuracy import induced_accuracy
from glasshouse.graph.attack import GRAPH_ATTACKS, GraphAttack, make_attack
from glasshouse.graph.question import Model
from glasshouse.graph.run import run_on_scene
from glasshouse.graph.scene import Scene, checked_graph
from glasshouse.graph.trainer import GNNTrainer
from glasshouse.pool import ShadowPool
from glasshouse.pool.shadow_pool import described
from glasshouse.population import as_members, fingerprint_of, random_subsets
from glasshouse.progress import note_work, track
from glasshouse.randomness import seed_for
from glasshouse.report import Context, Surroundings
from glasshouse.result import AuditResult
from glasshouse.training import Trainer

__all__ = ["audit"]

DEFAULT_ATTACKS = ("base", "lira", "rmia", "classifier", "classifier-2hop", "g-base")


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
        model: the target, ``(x, edge_index) -> logits``; a black box will do. None trains one on ``members``.
        members: [n] who trained the target, for evaluation alone; a random half where None.
        trainer: ``(data, members, seed) -> model``, as the target was trained; `GNNTrainer` by default.
        shadow_trainer: how the attacker trains, where it does not know how the owner did: another architecture or
            optimizer (the paper's mismatched adversary).
        attacks: i.i.d. attacks by name (they look at zero-hop queries), ``"g-base"``, ``"g-regressed"``,
            ``"classifier-2hop"``, objects, or mappings such as ``{"name": "g-base", "sampler": "gibbs"}``; ``"best"``
            picks one of either kind by simulated targets and says why.
        shadows: how many shadow models, in complementary pairs.
        mode: ``"online"`` or ``"offline"``, for the attacks given by name.
        nodes: ids of the nodes to audit; all by default.
        known_graph: the graph as the attacker knows it, such as `noisy_edges` of ``data``; ``data`` by default.
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
    checked_graph(data)
    count = int(data.num_nodes)
    if members is None:
        members = random_subsets(count, models=1, fraction=0.5, seed=seed)[0]
    truth = as_members(members, (count,), place="members")
    seen = data if known_graph is None else known_graph
    # a first scene without models checks nodes and ids before the long work
    scene = Scene(seen, _nobody, [], np.empty((0, count), dtype=np.bool_), nodes=nodes, truth=truth, ids=ids)
    # i.i.d. attacks know only the audited nodes, graph attacks all of them
    own = prior if np.ndim(prior) == 0 else np.asarray(prior)[scene.nodes]

    def make(name: str, parameters: Mapping[str, Any]) -> Attack | GraphAttack:
        expected = prior if name in GRAPH_ATTACKS.names() else own
        return make_attack(name, parameters, mode=mode, prior=expected, seed=seed, fprs=wanted)

    wanted = checked_rates(fprs, truth[scene.nodes])
    made = named_attacks(attacks, make)
    owner: Trainer = GNNTrainer() if trainer is None else trainer
    pool = ShadowPool.plan(
        seen, shadow_trainer or owner, shadows=shadows, fraction=fraction, seed=seed, store=store, compute=compute
    )
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
    scene = Scene(seen, target, trained, pool.members, nodes=nodes, truth=truth, ids=ids)
    context = Context(
        title=title,
        about=" ".join([about, *_oddities(data)]).strip(),
        shadows=shadows,
        mode=mode,
        seed=seed,
        train_accuracy=induced_accuracy(target, data, truth),
        test_accuracy=induced_accuracy(target, data, ~truth),
        fingerprint=fingerprint_of(data),
        shadow_seconds=spent,
        settings={
            "trainer": described(owner),
            "shadow trainer": "as the target's" if shadow_trainer is None else described(shadow_trainer),
            "attacker's graph": "the owner's" if known_graph is None else fingerprint_of(seen),
            "prior": prior if np.ndim(prior) == 0 else f"one for each of {np.size(prior)} nodes",
            "training share": fraction,
            "threshold policy": policy,
        },
        versions=library_versions("torch-geometric", "numba"),
    )
    outcomes = {
        name: run_on_scene(attack, scene, fprs=wanted, policy=policy, progress=progress)
        for name, attack in made.items()
    }
    labels = data.y.cpu().numpy()[scene.nodes]
    evidence = scene.of_nodes(scene.zero_hop)
    shown = truth[scene.nodes]
    found = conclude(evidence, outcomes, members=shown, labels=labels, fprs=wanted, context=context, claim=claim)
    around = Surroundings(data.edge_index.cpu().numpy(), members=truth, labels=data.y.cpu().numpy(), nodes=scene.nodes)
    return dataclasses.replace(found, surroundings=around)


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
