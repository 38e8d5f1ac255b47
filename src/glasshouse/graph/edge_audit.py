"""The one call for edges: which edges of its training graph does a GNN give away."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch_geometric.data import Data

from glasshouse.attacks.attack import AttackChoice, chosen_attacks
from glasshouse.auditing.options import Attacker, Evaluation, check_options, documented
from glasshouse.auditing.result import AuditResult
from glasshouse.auditing.steps import audit_view, check_attacks, checked_rates, library_versions
from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError
from glasshouse.core.progress import track
from glasshouse.core.randomness import seed_for
from glasshouse.data import as_members, complementary_halves
from glasshouse.evaluation import Known
from glasshouse.evidence import Mode
from glasshouse.graph.data.audited import CandidateEdges, Others, candidate_edges
from glasshouse.graph.data.checking import checked_graph
from glasshouse.graph.data.population import GraphPopulation, induced
from glasshouse.graph.edge_scene import EdgeScene
from glasshouse.graph.models.networks import Model
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.training.setting import node_accuracy
from glasshouse.graph.training.trainer import GNNTrainer
from glasshouse.pool.shadow_pool import described
from glasshouse.report import Context
from glasshouse.training.trainer import Trainer, check_trainer

EDGE_ATTACKS = ("g-edge", "base", "lira", "edge-posteriors", "edge-features", "edge-influence")

_OTHERS = {
    "distance": "non-edges whose ends are as far apart as those of the edges, once all audited pairs are taken out",
    "random": "pairs of random nodes; these are easier to tell from edges than any that an attacker would ask about",
    "held out": "edges that the target was trained without, drawn by a coin",
}
_NO_COIN = (
    "the pairs that are not edges were chosen and not drawn by a coin, so they differ from edges without the model; "
    'audit with others="held out" for an edge-level ε'
)


@documented
def audit_edges(
    data: Data,
    *,
    model: Model | None = None,
    members: ArrayLike | None = None,
    trainer: Trainer | None = None,
    attacks: Sequence[AttackChoice] = EDGE_ATTACKS,
    edges: int = 500,
    others: Others = "distance",
    shadows: int = 8,
    mode: Mode = "online",
    attacker: Attacker = Attacker(),
    evaluation: Evaluation = Evaluation(),
    seed: int = 0,
    title: str = "Edge audit of a graph neural network",
    progress: bool | None = None,
) -> AuditResult:
    """Train shadow GNNs with and without the audited edges, and measure which edges of the target can be recognised.

    Every model is trained on the same nodes. A pair is a member of a model if its training graph joins the two nodes.

    Args:
        data: the graph, without values of edges.
        model: the target, trained on the members and the edges between them. None trains one.
        members: [n] which nodes trained the target; all by default. Pairs of these nodes are audited.
        trainer: ``(data, members, seed) -> model``, as the target was trained; by default `GNNTrainer`.
        edges: how many edges are audited, with as many pairs that are not edges of the target.
        others: what these pairs are: ``"distance"``, ``"random"`` or ``"held out"``; see `candidate_edges`. Edges are
            held out only from a target that is trained here.
        attacker: its ``prior`` is the share of edges among the pairs that it expects.

    Example:
        >>> from glasshouse.graph import citation_graph
        >>> data = citation_graph(nodes=120, classes=3)
        >>> trainer = GNNTrainer(hidden=8, epochs=5, device="cpu")
        >>> result = audit_edges(data, trainer=trainer, attacks=["g-edge"], edges=40, shadows=2)
        >>> result.table()["attack"]
        array(['g-edge'], dtype='<U6')
    """
    graph = checked_graph(data)
    check_options(attacker, evaluation, "edges")
    if evaluation.design is not None:
        raise InputError("design: which pairs are edges of a training graph is drawn by this audit; leave it out.")
    if trainer is None and model is not None:
        raise InputError("trainer: missing; shadow models must be trained as the given model was.")
    if model is not None and others == "held out":
        raise InputError(
            'others: edges cannot be held out from a model that is trained already. Use "distance", or pass model=None.'
        )
    usual = trainer or GNNTrainer()
    check_trainer(usual, graph=True)
    everyone = np.ones(int(graph.num_nodes), dtype=np.bool_)
    nodes = everyone if members is None else as_members(members, everyone.shape, place="members")
    part = induced(graph, nodes)
    names = getattr(graph, "ids", np.arange(len(everyone)).astype(str))
    part.ids = np.asarray(names)[nodes].tolist()  # the ends keep their names
    pairs = candidate_edges(part, count=edges, others=others, seed=seed)
    fprs = checked_rates(evaluation.fprs, pairs.present)
    made = chosen_attacks(attacks, offers=("records", "edges"), mode=mode, prior=attacker.prior, seed=seed, fprs=fprs)
    plan = complementary_halves(len(pairs.present), models=shadows, seed=seed)
    made, left_out = check_attacks(made, plan, named=attacks is not EDGE_ATTACKS)
    target = model
    if target is None:
        target = _trained(usual, pairs, pairs.present, seed=seed_for(seed, "target"))
    else:
        profile_models([target], part, parts=False)
    began = time.perf_counter()
    seeds = [seed_for(seed, "shadow", k) for k in range(shadows)]
    models = [
        _trained(usual, pairs, who, seed=own)
        for who, own in track(
            zip(plan, seeds, strict=True), total=shadows, label="Shadow models", unit="models", show=progress
        )
    ]
    seconds = time.perf_counter() - began
    scene = EdgeScene(pairs.known, target, models, plan, pairs=pairs.pairs, ids=pairs.ids, others=others)
    context = Context(
        title=title,
        about=f"{len(pairs.present)} pairs of nodes were audited: {edges} edges, and {_OTHERS[others]}.",
        shadows=shadows,
        mode=mode,
        seed=seed,
        fingerprint=GraphPopulation(graph).fingerprint(),
        shadow_seconds=seconds,
        settings={
            "trainer": described(usual),
            "unit": "edge",
            "pairs that are not edges": others,
            "prior": attacker.prior,
            "accuracy on training nodes": round(node_accuracy(target, graph, nodes, setting="inductive"), 3),
        },
        versions=library_versions("torch-geometric"),
    )
    ends = part.y.cpu().numpy()[pairs.pairs]
    alike = (ends[0] == ends[1]).astype(np.int64)
    return audit_view(
        scene,
        made,
        members=pairs.present,
        labels=alike,
        evaluation=dataclasses.replace(evaluation, fprs=fprs),
        context=context,
        progress=progress,
        prior=attacker.prior,
        left_out=left_out,
        known=Known(x=np.stack([pairs.distance, alike], axis=1).astype(np.float64), labels=alike),
        estimated=False,
        withheld="" if pairs.by_coin else _NO_COIN,
    )


def _trained(trainer: Trainer, pairs: CandidateEdges, chosen: BoolArray, *, seed: int) -> Any:
    """A model that was trained on all nodes, with the chosen pairs [P] as edges."""
    graph = pairs.graph(chosen)
    return trainer(graph, np.ones(int(graph.num_nodes), dtype=np.bool_), seed)
