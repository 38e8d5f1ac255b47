"""Features of every node of one target: single attacks on three queries, G-BASE's signal, neighbours and kin.

Kin of a node: the nodes with features like its own. The target's answers about them predict its answer about the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.special import expit
from torch_geometric.data import Data

from glasshouse.attacks.in_out_moments import moments
from glasshouse.attacks.stacked import Features, record_features
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.numerics import distinct
from glasshouse.evidence import Evidence, Mode
from glasshouse.graph.attacks.stacking.similar_nodes import Described, SimilarNodes, compact
from glasshouse.graph.sampling.posterior import log_odds

# what may be left out, to see what it adds: a feature is left out if any word of its name is
SIGNALS = ("alone", "whole", "sampled", "kin", "gain", "g-base", "neighbours", "degree", "label", "posterior")


@dataclass(frozen=True, eq=False)
class GraphContext:
    """Neighbours, labels and kin of every node, or of the asked ones: what is known from the graph without a model.

    Kin is for queries that do not depend on a sample: nodes queried alone are compared by their features, and in the
    whole graph also by their neighbours' mean features.
    """

    adjacency: csr_array  # [J, n] 1 for each neighbour of an asked node; J = n if all nodes are asked
    degree: FloatArray  # [J] number of neighbours
    labels: IntArray  # [J] classes
    among: csr_array  # [J, J] the neighbours that are asked themselves
    kin: Mapping[str, SimilarNodes]  # by query; empty if kin is left out

    @classmethod
    def of(
        cls, data: Data, *, kin: bool = True, device: torch.device | None = None, nodes: IntArray | None = None
    ) -> GraphContext:
        """From a graph; an edge counts once, and a node is not its own neighbour.

        The asked ``nodes`` [J], ascending, are all by default; others are only neighbours: cost is in proportion. Kin
        is computed on a ``device``, by default where the features are.
        """
        count = int(data.num_nodes)
        source, receiver = data.edge_index.cpu().numpy()
        apart, labels = source != receiver, data.y.cpu().numpy().astype(np.int64)
        if nodes is not None:
            place = np.full(count, -1)
            place[nodes] = np.arange(len(nodes))
            receiver, labels = place[receiver], labels[nodes]
            apart &= receiver >= 0
        receiver, source = np.divmod(distinct(receiver[apart] * count + source[apart]), count)
        adjacency = csr_array((np.ones(len(source)), (receiver, source)), shape=(len(labels), count))
        degree = np.bincount(receiver, minlength=len(labels)).astype(np.float64)
        among = adjacency if nodes is None else adjacency[:, nodes]
        if not kin:
            return cls(adjacency, degree, labels, among, {})
        own = compact(data.x if nodes is None else data.x[torch.from_numpy(nodes)])
        shares = np.repeat(1 / np.maximum(degree, 1), degree.astype(np.int64)).astype(np.float32)
        places = adjacency.indices.astype(np.int32), adjacency.indptr.astype(np.int32)  # half the memory of products
        averaging, reached = csr_array((shares, *places), shape=adjacency.shape), own
        if nodes is not None:  # features of others than the neighbours are not looked at
            near = distinct(adjacency.indices)
            averaging, reached = averaging[:, near], data.x[torch.from_numpy(near.astype(np.int64))]
        around = compact(averaging @ compact(reached, copies=max(degree.mean(), 1)))
        where = data.x.device if device is None else device
        chosen = None if where.type == "cpu" else where
        alone, beside = (Described.of(features, labels, device=chosen) for features in (own, around))
        parts = {"alone": [alone], "whole": [alone, beside]}
        found = {query: SimilarNodes.of(part, labels) for query, part in parts.items()}
        return cls(adjacency, degree, labels, among, found)

    def mean(self, values: FloatArray, *, alone: float) -> FloatArray:
        """Mean [J] over each asked node's neighbours; ``alone`` if it has none.

        The values are those of all nodes [n]; or of the asked ones [J], whose other neighbours are then left out.
        """
        known = len(values) == self.adjacency.shape[1]
        degree = self.degree if known else np.diff(self.among.indptr)
        summed = (self.adjacency if known else self.among) @ values
        return np.asarray(np.where(degree > 0, summed / np.maximum(degree, 1), alone))


class SampledAnswers(NamedTuple):
    """Answers of K models about every node under M sampled training sets, [K, M, n] each."""

    own: FloatArray  # the node's loss in the graph of the sampled members and itself
    signal: FloatArray  # S of eq. (6): that loss, plus what the node's presence changes in its neighbours' losses

    @property
    def gain(self) -> FloatArray:
        """What the node's presence adds to its neighbours' log-confidence, [K, n], mean over samples."""
        return np.asarray((self.own - self.signal).mean(axis=1))

    def of(self, rows: Sequence[int]) -> SampledAnswers:
        """The answers of some of the models."""
        return SampledAnswers(self.own[list(rows)], self.signal[list(rows)])


@dataclass(frozen=True, kw_only=True, eq=False)
class TargetSignals:
    """All that is used to judge one target: answers of the target and of its references about every node."""

    alone: Evidence  # losses without edges, of the target [n] and of its R references [R, n]
    whole: Evidence  # the same in the whole graph
    target: SampledAnswers  # the target's answers under sampled training sets, [1, M, n]
    references: SampledAnswers  # the same for the S references that were queried under these sets, [S, M, n]
    members: BoolArray  # [S, n] members of these S references
    posterior: FloatArray | None = None  # [n] log-odds from the round before; None in the first
    plain: Features | None = None  # its features that do not depend on sampled training sets, if they are known


def plain_features(
    targets: Sequence[tuple[Evidence, Evidence]],  # of each target the losses without edges and in the whole graph
    context: GraphContext,
    *,
    mode: Mode,
    # of each target BASE's log-odds [n] of all nodes, if the targets' losses are those of asked nodes only
    odds: Sequence[FloatArray] | None = None,
) -> list[Features]:
    """Features of several targets that do not depend on sampled training sets, and so are the same in every round.

    Kin are asked about all targets at once, which costs a fraction.
    """
    found: list[Features] = [{} for _ in targets]
    for place, query in enumerate(("alone", "whole")):
        single = [record_features(target[place], mode=mode) for target in targets]
        for features, one in zip(found, single, strict=True):
            features |= {f"{query} {name}": value for name, value in one.items()}
        if query in context.kin:
            surprises = np.stack([_surprise(one) for one in single])
            answers = context.kin[query].expected(surprises)
            for features, surprise, expected in zip(found, surprises, answers, strict=True):
                features[f"{query} kin"] = expected
                features[f"{query} beyond kin"] = surprise - expected  # trees would need many splits for a difference
    for number, features in enumerate(found):
        known = features["alone base"] if odds is None else odds[number]
        features["neighbours' base"] = context.mean(expit(known), alone=0.5)
        features["degree"] = np.log1p(context.degree)
        features["label"] = context.labels.astype(np.float64)
    return found


def node_features(signals: TargetSignals, context: GraphContext, *, mode: Mode) -> Features:
    """Features by name, [n] each; offline, only out-models of a node are used."""
    plain = signals.plain
    found = dict(plain_features([(signals.alone, signals.whole)], context, mode=mode)[0] if plain is None else plain)
    sampled = Evidence(
        target_loss=signals.target.own.mean(axis=1)[0],
        shadow_loss=signals.references.own.mean(axis=1),
        shadow_members=signals.members,
    )
    found |= {f"sampled {name}": value for name, value in record_features(sampled, mode=mode).items()}
    gain, gains = signals.target.gain[0], signals.references.gain
    found["gain"] = gain
    found["gain over outside"] = gain - _mean_gain(gains, ~signals.members)
    if mode == "online":
        found["gain over inside"] = gain - _mean_gain(gains, signals.members)
    odds = gbase_odds(signals, mode)  # [M, n]
    found["g-base"], found["g-base odds"] = expit(odds).mean(axis=0), odds.mean(axis=0)
    found["neighbours' g-base"] = context.mean(found["g-base"], alone=0.5)
    if signals.posterior is not None:
        found["posterior"] = signals.posterior
        found["neighbours' posterior"] = context.mean(expit(signals.posterior), alone=0.5)
    return found


def gbase_odds(signals: TargetSignals, mode: Mode) -> FloatArray:
    """G-BASE's log-odds [M, n] under each sampled training set (the paper's Definition 2, before its mean)."""
    usable = None if mode == "online" else ~signals.members
    target, references = signals.target.signal[0], signals.references.signal  # [M, n], [S, M, n]
    return np.stack([log_odds(target[i], references[:, i], usable) for i in range(len(target))])


def _mean_gain(gains: FloatArray, who: BoolArray) -> FloatArray:
    """[n] mean of the gains [S, n] over one side; over all models for a node that has none on this side."""
    return moments(gains, who | ~who.any(axis=0)).mean


def _surprise(single: Features) -> FloatArray:
    """[n] how much surer the target is than its references, in standard deviations among these."""
    sides = [single[name] for name in ("from_outside", "from_inside") if name in single]
    return np.asarray(np.mean(sides, axis=0))
