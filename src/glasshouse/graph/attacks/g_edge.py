"""Attacks on edges: the Bayes-optimal rule for one edge, and three published ways to steal links to compare with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data

from glasshouse.attacks import Attack, register
from glasshouse.attacks.prior import learned_posterior
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.evidence import Kind
from glasshouse.graph.attacks.graph_attack import Drawn, PriorRule, ToggleRule
from glasshouse.graph.data.audited import candidate_edges
from glasshouse.graph.edge_scene import EdgeScene
from glasshouse.graph.rule.edge_toggles import EdgeEngine
from glasshouse.graph.sampling.samplers import Samples, SamplingRequest, draw

EdgeSampler = Callable[[Any, SamplingRequest], Samples | BoolArray]  # the first is the `EdgeScene`
_LOOSE = 1e6  # a penalty on the weight of the rule's log-odds that does not count
_OF_EDGES = ("independent", "mia")  # samplers by name that know nothing of nodes


class EdgeAttack(Attack[EdgeScene]):
    """An attack that looks at pairs of nodes."""

    kind: ClassVar[Kind] = "edges"


def learned_prior(scene: EdgeScene) -> FloatArray:
    """[P] λ of each pair, by what its ends look like: learned on other pairs of the known graph, without the target.

    Some of the known edges are taken out, and as many non-edges are drawn as those of the audit were. A logistic
    regression tells the two apart by how similar both ends are (the shadow models' mean answers, features), whether
    they have one label, and their degrees. Where a coin decided which edges the target has, λ is 1/2.
    """
    if scene.others == "held out":
        return np.full(len(scene.ids), 0.5)
    count = max(1, min(len(scene.ids) // 2, scene.data.edge_index.shape[1] // 8))  # most edges stay in the graph
    examples = candidate_edges(scene.data, count=count, others=scene.others)
    asked, known = (np.sort(pairs, axis=0).T.tolist() for pairs in (scene.pairs, examples.pairs))
    apart = np.array([pair not in asked for pair in known])
    learner = make_pipeline(StandardScaler(), LogisticRegression())
    learner.fit(_looks(scene, examples.known, examples.pairs)[apart], examples.present[apart])
    found = learner.decision_function(_looks(scene, examples.known, scene.pairs))
    return learned_posterior(np.asarray(found))


def _looks(scene: EdgeScene, data: Data, pairs: IntArray) -> FloatArray:
    """[P, 5] what both ends of each pair look like on a graph of the scene's nodes."""
    answers, labels = scene.expected_posteriors(data), data.y.cpu().numpy()[pairs]
    x = data.x.cpu().numpy().astype(np.float64)
    degrees = np.log1p(np.bincount(data.edge_index.flatten().cpu().numpy(), minlength=len(x)))[pairs]
    similar = _cosines(answers - answers.mean(axis=1, keepdims=True), pairs), _cosines(x, pairs)
    return np.stack(
        [*similar, labels[0] == labels[1], degrees.sum(axis=0), np.abs(np.diff(degrees, axis=0)[0])], axis=1
    )


@register("g-edge")
@dataclass(frozen=True, kw_only=True)
class GEdge(ToggleRule[EdgeScene], EdgeAttack):
    r"""Posterior probability that an edge was in the training graph, averaged over plausible graphs of the others.

    :math:`\frac1M \sum_i \sigma(-S_\theta - \log \frac1K \sum_k e^{-S_k} + \log\frac{\lambda}{1-\lambda})`, where
    :math:`S` is the change of all nodes' losses by the edge, on sample i's graph; docs/edges.md derives it.

    Args:
        sampler: ``"independent"``, ``"mia"``, `GroundTruth`, or your own ``(scene, request) -> bool [M, P]``.
        prior: as of `ToggleRule`, or ``"learned"`` from other pairs of the known graph (docs/edges.md).
        engine: ``"auto"``, or ``"reference"`` for the rule as written.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from glasshouse.graph.models.networks import build_gnn
        >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0]))
        >>> torch.manual_seed(0) and None
        >>> models = [build_gnn("gcn", features=3, hidden=4, classes=2) for _ in range(3)]
        >>> scene = EdgeScene(data, models[0], models[1:], [[1, 0], [0, 1]], pairs=[[0, 1], [2, 2]])
        >>> scores = GEdge().score(scene)
        >>> scores.shape, bool(((scores > 0) & (scores < 1)).all())
        ((2,), True)
    """

    judged: ClassVar[str] = "edges"
    prior_rules: ClassVar[Mapping[str, PriorRule]] = {"learned": learned_prior}

    sampler: str | EdgeSampler = "independent"
    engine: EdgeEngine = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.sampler, str) and self.sampler not in _OF_EDGES:
            raise InputError(f"sampler: {self.sampler!r} does not draw edges. Use {' or '.join(_OF_EDGES)}.")

    @property
    def label(self) -> str:
        """Its name in tables, which includes a prior by name."""
        return f"{self.name}-{self.prior}" if isinstance(self.prior, str) else self.name

    def _drawn(self, scene: EdgeScene) -> Drawn:
        """Draw graphs, and toggle every pair in each of them."""
        self.check(scene.shadow_members)
        usable = ~scene.shadow_members if self.mode == "offline" else None
        request = self._request(scene)
        samples = draw(self._sampler, scene, request)  # type: ignore[arg-type] # those let in look at no nodes
        return Drawn(samples, request.prior, scene.toggled(samples.masks, engine=self.engine), usable)

    def _log_odds(self, scene: EdgeScene, signals: FloatArray, usable: BoolArray | None) -> FloatArray:
        """Log-odds without the prior, [M, P]; beside a learned prior, times a weight from simulated targets."""
        found, members = super()._log_odds(scene, signals, usable), scene.shadow_members
        if not isinstance(self.prior, str) or len(members) < 4:  # too few to simulate targets with
            return found
        simulated = []
        for k in range(len(members)):
            rows = scene.references_of(k)
            chosen = signals[[1 + k, *(1 + rows)]], None if usable is None else usable[rows]
            simulated.append(super()._log_odds(scene, *chosen))
        odds, inside = np.stack(simulated).reshape(-1, 1), np.repeat(members, len(found), axis=0).reshape(-1)
        some = np.isfinite(odds[:, 0])
        weight = LogisticRegression(C=_LOOSE, fit_intercept=False).fit(odds[some], inside[some]).coef_
        return found * max(0.0, float(weight[0, 0]))


@register("edge-posteriors")
@dataclass(frozen=True, kw_only=True)
class EdgePosteriors(EdgeAttack):
    """Correlation of the target's class probabilities about both ends (He and others, 2021, their attack 0).

    Example:
        >>> EdgePosteriors().name
        'edge-posteriors'
    """

    least_models: ClassVar[int] = 0

    def score(self, scene: EdgeScene) -> FloatArray:
        """Correlations, [P]."""
        found = scene.posteriors
        return _cosines(found - found.mean(axis=1, keepdims=True), scene.pairs)


@register("edge-features")
@dataclass(frozen=True, kw_only=True)
class EdgeFeatures(EdgeAttack):
    """Cosine of the features of both ends: what can be said without the target (He and others, 2021).

    Example:
        >>> EdgeFeatures().name
        'edge-features'
    """

    least_models: ClassVar[int] = 0

    def score(self, scene: EdgeScene) -> FloatArray:
        """Cosines, [P]."""
        return _cosines(scene.data.x.cpu().numpy().astype(np.float64), scene.pairs)


@register("edge-influence")
@dataclass(frozen=True, kw_only=True)
class EdgeInfluence(EdgeAttack):
    """How far the target's answer about one end follows the other's features (LinkTeller, Wu and others, 2022).

    LinkTeller asks a service that holds the private graph. Here the attacker hands over the graph, so the pair is
    joined for the question: a model follows an edge that it was trained with in another way than one that it never saw.

    Example:
        >>> EdgeInfluence().name
        'edge-influence'
    """

    least_models: ClassVar[int] = 0

    def score(self, scene: EdgeScene) -> FloatArray:
        """Influences, [P]."""
        return scene.influence


def _cosines(rows: FloatArray, pairs: IntArray) -> FloatArray:
    """[P] cosine of the rows [n, width] of both ends of each pair."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(length > 0, length, 1.0)
    return np.asarray(np.einsum("pf,pf->p", *unit[pairs]))
