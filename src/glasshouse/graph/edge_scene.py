"""What an attack on edges looks at: a graph without the audited pairs, the target, and shadow models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch_geometric.data import Data

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray, TextArray
from glasshouse.core.digests import digest_arrays
from glasshouse.core.errors import InputError
from glasshouse.data import as_ids
from glasshouse.evidence import Evidence, Kind
from glasshouse.graph.data.audited import Others
from glasshouse.graph.data.checking import checked_graph
from glasshouse.graph.models.profile import AnyModel, Profiled
from glasshouse.graph.rule.edge_toggles import EdgeEngine, EdgeQuestion, answer_edges, ask_edges, edge_influences
from glasshouse.graph.scene import PooledScene

_REMEMBERED = 8  # sets of masks about which answers are kept


@dataclass(frozen=True, eq=False, init=False, repr=False)
class EdgeScene(PooledScene):
    """One target and some pairs of nodes of its training graph; which of them were edges is not in it.

    Args:
        data: the graph that the attacker knows, without the audited pairs; all of its nodes trained all models.
        target: the model under audit, ``(x, edge_index) -> logits``.
        shadows: the K shadow models.
        shadow_members: [K, P] which of the pairs were edges in the training of which shadow model.
        pairs: [2, P] the ends of each pair.
        ids: [P] names of the pairs; by default their ends.
        others: how the pairs were chosen that are not edges of the target; see `candidate_edges`.

    Example:
        >>> from glasshouse.graph.models.networks import build_gnn
        >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0]))
        >>> models = [build_gnn("gcn", features=3, hidden=4, classes=2) for _ in range(3)]
        >>> EdgeScene(data, models[0], models[1:], [[1, 0], [0, 1]], pairs=[[0, 1], [2, 2]]).ids
        array(['0 - 2', '1 - 2'], dtype='<U5')
    """

    pairs: IntArray
    ids: TextArray
    others: Others

    def __init__(
        self,
        data: Data,
        target: AnyModel,
        shadows: Sequence[AnyModel],
        shadow_members: ArrayLike,
        *,
        pairs: ArrayLike,
        ids: Sequence[Any] | NDArray[Any] | None = None,
        others: Others = "distance",
    ) -> None:
        graph, ends = checked_graph(data), np.asarray(pairs, dtype=np.int64)
        if ends.ndim != 2 or len(ends) != 2 or not ends.size:
            raise InputError("pairs: give the ends of each audited pair, [2, P].")
        names = [f"{a} - {b}" for a, b in ends.T.tolist()] if ids is None else ids
        count = ends.shape[1]
        more = {"data": graph, "pairs": ends, "ids": as_ids(names, count, place="ids"), "others": others}
        self._hold(target, shadows, shadow_members, count, **more)
        self._pool.profiled(graph, parts=True)
        self.question(self._nothing)  # what is wrong with the pairs shows here

    def __repr__(self) -> str:
        return f"EdgeScene({self.data.num_nodes} nodes, {len(self.ids)} pairs, {len(self.shadows)} shadow models)"

    @property
    def offers(self) -> tuple[Kind, ...]:
        """Attacks on records look at the signal of each pair as if it was a loss."""
        return ("records", "edges")

    def audited(self, values: ArrayLike) -> NDArray[Any]:
        """The entries of the pairs; all of them are audited."""
        return np.asarray(values)

    @property
    def _nothing(self) -> BoolArray:
        """[1, P] the mask of the known graph."""
        return np.zeros((1, len(self.ids)), dtype=np.bool_)

    def question(self, masks: BoolArray) -> EdgeQuestion:
        """The question about masks [M, P], where the models are."""
        given = torch.from_numpy(masks), torch.from_numpy(self.pairs)
        return ask_edges(self.data, *given, device=self._pool.device)

    def toggled(self, masks: BoolArray, *, engine: EdgeEngine = "auto") -> FloatArray:
        """S under sampled masks [M, P], for target and shadow models, [1 + K, M, P]; no model is asked twice."""
        known: dict[Any, FloatArray] = self._pool.kept.setdefault("signals", {})  # [M, P] each
        models, key = self._pool.profiled(self.data, parts=True), digest_arrays([masks])
        places = self._own(range(len(models)))
        missing = [at for at in places if (key, engine, at) not in known]
        if missing:
            if len(known) > _REMEMBERED * len(models):
                known.clear()
                missing = places
            found = answer_edges([models[at] for at in missing], self.question(masks), engine)
            known.update({(key, engine, at): one for at, one in zip(missing, found.cpu().numpy(), strict=True)})
        return np.stack([known[key, engine, at] for at in places])

    @property
    def influence(self) -> FloatArray:
        """[P] how far the target's answer about one end of each pair follows the features of the other."""
        known, place = self._pool.kept.setdefault("influences", {}), self._places[0]
        if place not in known:
            known[place] = edge_influences(self.profiled()[0], self.question(self._nothing)).cpu().numpy()
        return np.asarray(known[place])

    @property
    def posteriors(self) -> FloatArray:
        """[n, C] the target's class probabilities on the graph that the attacker knows."""
        return self._probabilities(self.profiled()[:1], self.data)

    def expected_posteriors(self, data: Data) -> FloatArray:
        """[n, C] the shadow models' mean class probabilities on a graph of the same nodes."""
        return self._probabilities(self.profiled()[1:], data)

    def _probabilities(self, models: Sequence[Profiled], data: Data) -> FloatArray:
        graph = Data(x=data.x, edge_index=data.edge_index).to(self._pool.device)
        with torch.no_grad():
            found = [one.logits(graph).double().softmax(1).cpu().numpy() for one in models]
        return np.asarray(np.mean(found, axis=0))

    @cached_property
    def evidence(self) -> Evidence:
        """S of each pair on the known graph, as the loss ``softplus(S)``, whose margin is -S.

        The labels say whether both ends are of one class.
        """
        signals = self.toggled(self._nothing)[:, 0]
        losses = np.logaddexp(0.0, signals)
        ends = self.data.y.cpu().numpy()[self.pairs]
        return Evidence(
            target_loss=losses[0],
            shadow_loss=losses[1:],
            shadow_members=self.shadow_members,
            ids=self.ids,
            labels=(ends[0] == ends[1]).astype(np.int64),
        )

    @property
    def zero_hop(self) -> Evidence:
        """What the sampler ``"mia"`` looks at: the evidence about each pair by itself."""
        return self.evidence

    def of_nodes(self, evidence: Evidence, pairs: slice) -> Evidence:
        """The evidence about these pairs, which are all of them."""
        return evidence
