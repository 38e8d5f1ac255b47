"""Which nodes or edges are audited.

Of nodes all, those that the user names, or a random sample spread over degrees and classes. Of edges pairs of members
whose edge is unknown to the attacker: half of them are edges of the target; the others are non-edges at the same
distance, random non-edges, or edges that the target was trained without.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray, TextArray
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator
from glasshouse.data import as_ids, as_members
from glasshouse.evaluation.intervals import Sampled
from glasshouse.graph.data.checking import checked_graph, labelled_nodes
from glasshouse.graph.models.calls import held_values

_LEVELS = (0.25, 0.5, 0.75, 0.9, 0.99)  # of degrees, where strata are cut: hubs have one of their own
_LEAST = 2.0  # nodes that a stratum gives: a variance within it needs two


class NodeSample(NamedTuple):
    """Nodes drawn from a graph, every node with the same chance."""

    nodes: IntArray  # [n] their positions, ascending
    strata: IntArray  # [n] the stratum of each of them
    sizes: IntArray  # [H] how many nodes of the graph each stratum has


class ChosenNodes(NamedTuple):
    """The nodes of an audit."""

    nodes: IntArray | None  # [n] their positions; None for all of them
    sampled: Sampled | None = None  # how they were drawn; None if they are all, or if the user named them
    note: str = ""  # what a reader of the figures must know about them; empty if they are all


def sample_nodes(data: Data, count: int, *, seed: int) -> NodeSample:
    """Draw nodes with a label at random within strata of class and degree.

    A stratum gives its share of the sample, rounded up or down at random, so that each node of the graph is drawn with
    the same chance: plain shares and means of the sample estimate those of the graph without weights. Since classes and
    degrees are in the sample as in the graph, such figures vary less than those of a plain random sample.
    """
    among = np.arange(int(data.num_nodes))[labelled_nodes(data)]
    size = len(among)
    labels = np.unique(data.y.cpu().numpy()[among], return_inverse=True)[1].astype(np.int64)
    degree = np.bincount(data.edge_index[1].cpu().numpy(), minlength=int(data.num_nodes))[among]
    group = np.searchsorted(np.unique(np.quantile(degree, _LEVELS)), degree, side="left")
    cell = labels * (len(_LEVELS) + 1) + group  # nodes of one class and a similar degree are next to each other
    wanted = np.asarray(np.bincount(cell) * (count / size), dtype=np.float64)
    stratum = _merged(wanted)[cell]
    sizes = np.bincount(stratum)
    random = generator(seed, "audited nodes")
    ends = np.floor(np.cumsum(sizes) * (count / size) + random.random() * (1 - 1e-9)).astype(np.int64)
    ends[-1] = count  # what rounding of floats might lose
    taken = np.diff(ends, prepend=0)
    order = np.lexsort((random.random(size), stratum))  # a random order within each stratum
    place = np.arange(size) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within the stratum
    nodes = np.sort(order[place < np.repeat(taken, sizes)])
    return NodeSample(among[nodes], stratum[nodes], sizes)


def _merged(wanted: FloatArray) -> IntArray:
    """The stratum of each cell: neighbouring cells are joined until each of them gives enough nodes."""
    strata = np.zeros(len(wanted), dtype=np.int64)
    number, gathered = 0, 0.0
    for cell, some in enumerate(wanted.tolist()):
        strata[cell] = number
        gathered += some
        if gathered >= _LEAST:
            number, gathered = number + 1, 0.0
    if gathered > 0 and number:  # the rest is too small for a stratum of its own
        strata[strata == number] = number - 1
    return np.minimum(strata, max(0, number - 1))


def chosen_nodes(
    nodes: int | ArrayLike | None,  # how many to draw, at most; or positions [k], a mask [n], or ids as text [k]
    data: Data,
    *,
    ids: TextArray,  # [n] names of its nodes
    members: BoolArray,  # [n] who trained the target: how many they are in the whole graph is known without a sample
    seed: int,
) -> ChosenNodes:
    """What an audit means by ``nodes``: None for all, a number for a sample, or the nodes themselves."""
    labelled = labelled_nodes(data)
    size = len(ids[labelled])
    context = "" if size == len(ids) else context_note(size, members[(data.y < 0).cpu().numpy()])
    if nodes is None:
        return ChosenNodes(None, note=context)
    if not (isinstance(nodes, bool | np.bool_) or np.ndim(nodes)):
        try:
            count = operator.index(cast("int", nodes))
        except TypeError:
            raise InputError(f"nodes: {nodes!r} is neither a number of nodes nor a list of them.") from None
        if count < 1:
            raise InputError(f"nodes: {count} is too few; give how many nodes to audit, such as 20000, or their ids.")
        if count >= size:
            return ChosenNodes(None, note=context)
        found = sample_nodes(data, count, seed=seed)
        sampled = Sampled(strata=found.strata, sizes=found.sizes, members=int(members[labelled].sum()))
        return ChosenNodes(found.nodes, sampled, " ".join([sampled.sentence("nodes"), context]).strip())
    given = np.asarray(nodes)
    chosen = np.flatnonzero(as_members(given, (size,), place="nodes", ids=ids)) if given.dtype.kind == "U" else given
    named = int(chosen.sum()) if chosen.dtype == np.bool_ else len(chosen)
    note = f"{named} of {size} nodes were audited; who named them is not random, so the figures hold for these alone."
    return ChosenNodes(chosen, note=" ".join(filter(None, [note if named < size else "", context])))


def context_note(labelled: int, present: BoolArray) -> str:
    """What a report says about nodes without a label, bool [U] whether they were in the graph of the training."""
    trained = "all of them were" if present.all() else f"{int(present.sum())} of them were"
    return (
        f"{len(present)} nodes have no label, so they are context: they send messages, but {labelled} others are "
        f"audited. By members, {trained} in the graph that trained the target, and so it is with the shadow models."
    )


Others = Literal["distance", "random", "held out"]

_FAR = 5  # steps; a larger distance counts as infinite
_SOURCES = 256  # whose distances to all nodes are found at once
_TRIES = 50  # sources that are tried for a non-edge at a wanted distance


@dataclass(frozen=True, kw_only=True, eq=False)
class CandidateEdges:
    """A graph without some pairs, these pairs, and which of them the target was trained with.

    Example:
        >>> from glasshouse.graph import citation_graph
        >>> found = candidate_edges(citation_graph(nodes=120, classes=2), count=10, others="random", seed=0)
        >>> found.pairs.shape, int(found.present.sum())
        ((2, 20), 10)
    """

    known: Data  # the graph without the pairs, as the attacker knows it
    pairs: IntArray  # [2, P] their ends
    present: BoolArray  # [P] whether the target's graph has the edge; no attack sees it
    distance: IntArray  # [P] between the ends in the known graph; 6 for more than 5, or no way
    others: Others  # what the pairs are that are not edges of the target
    both: bool  # whether each edge goes both ways

    @property
    def ids(self) -> TextArray:
        """[P] the names of both ends, such as ``12 - 57``."""
        names = as_ids(getattr(self.known, "ids", None), int(self.known.num_nodes), place="data.ids")
        return np.array([f"{a} - {b}" for a, b in names[self.pairs.T].tolist()])

    @property
    def by_coin(self) -> bool:
        """Whether a coin decided which of the pairs the target has, so that nothing else tells them apart."""
        return self.others == "held out"

    def graph(self, chosen: BoolArray) -> Data:
        """The known graph with the chosen pairs, bool [P], as edges."""
        data = self.known.clone()
        added = torch.from_numpy(self.pairs[:, chosen]).to(data.edge_index.device)
        data.edge_index = torch.cat([data.edge_index, added, *([added.flip(0)] if self.both else [])], dim=1)
        return data


def candidate_edges(data: Data, *, count: int, others: Others = "distance", seed: int = 0) -> CandidateEdges:
    """Draw ``count`` edges of a graph, and as many pairs that are not edges of the target's graph.

    Args:
        data: the graph of the members, without values of edges.
        count: how many edges; all are drawn from the graph's edges without self-loops, each once.
        others: ``"distance"``, non-edges whose ends are as far apart as those of the edges once all audited pairs are
            taken out, with one end in common; ``"random"``, pairs of random nodes, which flatter every attack;
            or ``"held out"``, edges that the target is trained without, drawn by a coin.
        seed: of the draw.
    """
    graph = checked_graph(data)
    if held_values(graph):
        raise InputError("data: its edges have values, which an added edge would need too. Leave them out.")
    if not isinstance(count, int | np.integer) or count < 1:
        raise InputError(f"edges: {count!r} is not a positive whole number; give how many edges to audit, such as 500.")
    if others not in ("distance", "random", "held out"):
        raise InputError(f'others: {others!r} is not known. Use "distance", "random" or "held out".')
    size, both = int(graph.num_nodes), bool(is_undirected(graph.edge_index, num_nodes=int(graph.num_nodes)))
    ends = graph.edge_index.cpu().numpy().astype(np.int64)
    ways = np.sort(ends, axis=0) if both else ends
    keys = np.unique((ways[0] * size + ways[1])[ways[0] != ways[1]])
    wanted = count * (2 if others == "held out" else 1)
    if wanted > len(keys):
        raise InputError(f"edges: the graph has {len(keys)} edges, and {wanted} are needed. Audit fewer.")
    random = generator(seed, "audited edges")
    drawn = random.permutation(keys)[:wanted]
    gone = torch.from_numpy(np.isin(ways[0] * size + ways[1], drawn)).to(graph.edge_index.device)
    known = Data.from_dict({**graph.to_dict(), "edge_index": graph.edge_index[:, ~gone]})
    rest = ends[:, ~gone.cpu().numpy()]
    links = csr_array((np.ones(rest.shape[1], dtype=np.int8), (rest[0], rest[1])), shape=(size, size))
    present = np.arange(wanted) < count
    pairs = np.stack([drawn // size, drawn % size])
    if others != "held out":
        found = _non_edges(pairs, links, keys, others=others, both=both, random=random)
        pairs, present = np.hstack([pairs, found]), np.arange(2 * count) < count
    order = random.permutation(len(present))
    pairs, present = pairs[:, order], present[order]
    return CandidateEdges(
        known=known, pairs=pairs, present=present, distance=_distances(links, pairs), others=others, both=both
    )


def _non_edges(
    edges: IntArray, links: csr_array, keys: IntArray, *, others: Others, both: bool, random: np.random.Generator
) -> IntArray:
    """[2, P] pairs that are not edges, by ``keys`` of all edges: random, or each as far apart as one of the edges."""
    size, taken = links.shape[0], set(keys.tolist())
    limit = size * (size - 1) // (2 if both else 1) - len(taken)
    if edges.shape[1] > limit:
        raise InputError(
            f"edges: the graph has {limit} pairs without an edge, too few to compare with {edges.shape[1]} edges."
        )
    found = []

    def take(source: int, end: int) -> bool:
        low, high = (min(source, end), max(source, end)) if both else (source, end)
        if low == high or low * size + high in taken:
            return False
        taken.add(low * size + high)
        found.append((low, high))
        return True

    wanted = _distances(links, edges) if others == "distance" else np.zeros(edges.shape[1], dtype=np.int64)
    for (source, _), far in zip(edges.T.tolist(), wanted.tolist(), strict=True):
        placed = False
        for at in [source, *random.integers(size, size=_TRIES).tolist()] if far else []:
            ring = np.flatnonzero(_steps(links, np.array([at]))[0] == far)
            if placed := any(take(at, end) for end in random.permutation(ring)[:_TRIES].tolist()):
                break
        while not placed:  # at random, also where no pair is as far apart
            placed = take(*random.integers(size, size=2).tolist())
    return np.array(found, dtype=np.int64).T


def _steps(links: csr_array, sources: IntArray) -> IntArray:
    """[S, n] steps along the edges from each source to each node, 6 where there are more than 5."""
    found = dijkstra(links, indices=sources, unweighted=True, limit=_FAR)
    return cast("IntArray", np.where(np.isfinite(found), found, _FAR + 1).astype(np.int64))


def _distances(links: csr_array, pairs: IntArray) -> IntArray:
    """[P] steps between the ends of each pair."""
    blocks = [pairs[:, at : at + _SOURCES] for at in range(0, pairs.shape[1], _SOURCES)]
    return np.concatenate([_steps(links, one[0])[np.arange(one.shape[1]), one[1]] for one in blocks])
