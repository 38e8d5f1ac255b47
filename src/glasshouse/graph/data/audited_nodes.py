"""Which nodes are audited: all, those that the user names, or a random sample spread over degrees and classes."""

from __future__ import annotations

import operator
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike
from torch_geometric.data import Data

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray, TextArray
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator
from glasshouse.data import as_members
from glasshouse.evaluation.intervals import Sampled
from glasshouse.graph.data.checking import labelled_nodes

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
