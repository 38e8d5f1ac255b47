"""Features of every node of one target: single attacks on three queries, G-BASE's signal, neighbours and kin."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit
from torch_geometric.data import Data

from glasshouse.arrays import BoolArray, FloatArray, IntArray
from glasshouse.attacks.sides import moments
from glasshouse.attacks.stacking.features import Answers, Features, record_features
from glasshouse.evidence import Mode
from glasshouse.graph.attacks.stacking.answers import Sampled
from glasshouse.graph.attacks.stacking.kin import Kin
from glasshouse.numerics import log_mean_exp

__all__ = ["SIGNALS", "Surroundings", "View", "gbase_odds", "node_features", "without_signals"]

# what may be left out, to learn what it buys: a feature goes with any word of its name
SIGNALS = ("alone", "whole", "sampled", "kin", "gain", "g-base", "neighbours", "degree", "label", "posterior")


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Who is whose neighbour, what each node is called and whom it resembles: what the graph tells without a model.

    Args:
        adjacency: [n, n] ones.
        degree: [n] of each node.
        labels: [n].
        kin: for each query that does not depend on a sample, whom a node resembles in it: by its features when it is
            asked about alone, and by its neighbours' mean features as well in the whole graph. Empty where kin is not
            looked at.

    Example:
        >>> import torch
        >>> edges = torch.tensor([[0, 1, 2, 1], [1, 0, 1, 2]])
        >>> around = Surroundings.of(Data(x=torch.eye(4), edge_index=edges, y=torch.tensor([0, 1, 0, 1])))
        >>> around.mean(np.array([1.0, 0.0, 0.0, 9.0]), alone=0.5)
        array([0. , 0.5, 0. , 0.5])
    """

    adjacency: csr_array
    degree: FloatArray
    labels: IntArray
    kin: Mapping[str, Kin]

    @classmethod
    def of(cls, data: Data, *, kin: bool = True) -> Surroundings:
        """Of a graph; an edge counts once, and a node is not its own neighbour."""
        count = int(data.num_nodes)
        source, receiver = data.edge_index.cpu().numpy()
        apart = source != receiver
        pairs = np.unique(np.stack([receiver[apart], source[apart]]), axis=1)
        adjacency = csr_array((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), shape=(count, count))
        degree = np.bincount(pairs[0], minlength=count).astype(np.float64)
        labels = data.y.cpu().numpy().astype(np.int64)
        if not kin:
            return cls(adjacency, degree, labels, {})
        features = data.x.cpu().numpy().astype(np.float64)
        around = (adjacency @ features) / np.maximum(degree, 1)[:, None]
        both = np.concatenate([_of_length_one(features), _of_length_one(around)], axis=1)
        return cls(adjacency, degree, labels, {"alone": Kin.of(features, labels), "whole": Kin.of(both, labels)})

    def mean(self, values: FloatArray, *, alone: float) -> FloatArray:
        """Mean [n] over each node's neighbours; ``alone`` where it has none."""
        summed = self.adjacency @ values
        return np.asarray(np.where(self.degree > 0, summed / np.maximum(self.degree, 1), alone))


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """All that is looked at to judge one target: its answers and its references', about every node.

    Args:
        alone: without edges.
        whole: in the whole graph.
        target: the target's answers under sampled training sets, of one model.
        references: those of the references that were asked for them.
        members: who trained those, [R, n].
        posterior: [n] log-odds from the round before; None in the first.
    """

    alone: Answers
    whole: Answers
    target: Sampled
    references: Sampled
    members: BoolArray
    posterior: FloatArray | None = None


def node_features(view: View, around: Surroundings, *, mode: Mode) -> Features:
    """Features by name, [n] each; offline, only out-models of a node speak about it."""
    sampled = Answers(view.target.own.mean(axis=1)[0], view.references.own.mean(axis=1), view.members)
    found: Features = {}
    for name, answers in {"alone": view.alone, "whole": view.whole, "sampled": sampled}.items():
        told = record_features(answers, mode=mode)
        found |= {f"{name} {key}": value for key, value in told.items()}
        if name in around.kin:
            surprise = np.mean([told[key] for key in ("from_outside", "from_inside") if key in told], axis=0)
            found[f"{name} kin"] = around.kin[name].expected(surprise)
            found[f"{name} beyond kin"] = surprise - found[f"{name} kin"]  # no tree finds a difference with few splits
    gain, gains = view.target.gain[0], view.references.gain
    found["gain"] = gain
    found["gain over outside"] = gain - moments(gains, ~view.members).mean
    if mode == "online":
        found["gain over inside"] = gain - moments(gains, view.members).mean
    odds = gbase_odds(view, mode)  # [M, n]
    found["g-base"], found["g-base odds"] = expit(odds).mean(axis=0), odds.mean(axis=0)
    found["neighbours' base"] = around.mean(expit(found["alone base"]), alone=0.5)
    found["neighbours' g-base"] = around.mean(found["g-base"], alone=0.5)
    found["degree"] = np.log1p(around.degree)
    found["label"] = around.labels.astype(np.float64)
    if view.posterior is not None:
        found["posterior"] = view.posterior
        found["neighbours' posterior"] = around.mean(expit(view.posterior), alone=0.5)
    return found


def without_signals(features: Features, left_out: Collection[str]) -> Features:
    """The features that no left-out signal has a part in.

    Example:
        >>> found = {"alone base": np.zeros(1), "alone kin": np.zeros(1), "neighbours' base": np.zeros(1)}
        >>> list(without_signals(found, ["kin", "neighbours"]))
        ['alone base']
    """
    return {name: value for name, value in features.items() if not set(name.replace("'", "").split()) & set(left_out)}


def gbase_odds(view: View, mode: Mode) -> FloatArray:
    """G-BASE's log-odds [M, n] under each sampled training set (the paper's Definition 2, before its mean)."""
    asked = None if mode == "online" else ~view.members
    signals = view.references.signal
    rows = [-view.target.signal[0, i] - log_mean_exp(-signals[:, i], where=asked) for i in range(signals.shape[1])]
    return np.stack(rows)


def _of_length_one(rows: FloatArray) -> FloatArray:
    """Rows [n, D] on one scale, on which their mean square length is 1."""
    return np.asarray(rows / max(float(np.sqrt((rows**2).sum(axis=1).mean())), 1e-12))
