"""Training nodes drawn by snowball, priors that follow from such a draw, and edges that are known imperfectly."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch_geometric.data import Data

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError, raise_faults
from glasshouse.core.randomness import generator
from glasshouse.data import as_members, share_size
from glasshouse.data.members import both_ways, snowball
from glasshouse.graph.data.checking import check_edges
from glasshouse.graph.models.calls import EDGE_VALUES


def snowball_subset(data: Data, *, fraction: float, seed: int, branching: int | None = None) -> BoolArray:
    """Connected pieces of a graph that make up a share of its nodes, [n]: exactly ``round(fraction * n)`` of them.

    It grows from a random node, wave by wave: each node of a wave adds its neighbours, along edges in either direction.
    When a snowball cannot grow any more, a new one starts at a random node that is still outside. The last wave is
    cut at random to the size.

    Args:
        data: the graph.
        fraction: share of the nodes.
        seed: of the draw.
        branching: how many neighbours a node adds at most, chosen at random; all of them by default.

    Example:
        >>> path = Data(edge_index=torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]), num_nodes=6)
        >>> snowball_subset(path, fraction=0.5, seed=0)
        array([ True,  True,  True, False, False, False])
    """
    edges, count = _edges(data)
    wanted = share_size(fraction, count, of="nodes")
    if branching is not None and branching < 1:
        raise InputError(f"branching: {branching} is too small; use 1 or more, or None for all neighbours.")
    random = generator(seed, "snowball")
    return snowball(both_ways(edges, count), count, wanted, random=random, branching=branching)


def noisy_edges(data: Data, *, drop: float = 0.0, add: float = 0.0, seed: int) -> Data:
    """The graph as seen by an adversary who misses some edges and assumes others that do not exist.

    If every edge runs both ways, pairs are dropped and added as a whole and the result runs both ways too; otherwise
    each direction is a separate edge. Repeated edges are kept or dropped together. Self-loops stay.

    Kept edges keep their ``edge_weight`` and ``edge_attr``. An added edge does not exist, so it has none: it gets those
    of an existing edge that is drawn at random, the same in both directions. Other values of single edges are left out
    of the result.

    Args:
        data: the graph; not changed.
        drop: share of the edges that are missed.
        add: edges to add between random nodes that the graph does not join, as a share of its edges.
        seed: of the draw.

    Example:
        >>> pair = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3)
        >>> noisy_edges(pair, drop=1.0, add=1.0, seed=0).edge_index
        tensor([[1, 2],
                [2, 1]])
    """
    faults = []
    if not 0.0 <= drop <= 1.0:
        faults.append(f"drop: {drop} is not a share of the edges; use a number from 0 to 1.")
    if not 0.0 <= add < np.inf:
        faults.append(f"add: {add} is not a share of the edges; use 0 or more.")
    raise_faults(faults)
    (sources, targets), count = _edges(data)
    random = generator(seed, "noisy edges")
    every = sources * count + targets  # [E] one number per edge; repeated edges have the same
    links = np.flatnonzero(sources != targets)
    keys = np.unique(every[links])
    symmetric = np.array_equal(keys, np.unique(_turned(keys, count)))
    if symmetric:
        keys = keys[keys // count < keys % count]
    kept = random.permutation(keys)[round(drop * len(keys)) :]
    added = _absent(keys, count, wanted=round(add * len(keys)), symmetric=symmetric, random=random)
    like = generator(seed, "values of noisy edges").choice(links, size=len(added)) if len(added) else added
    if symmetric:
        kept, added = (np.concatenate([part, _turned(part, count)]) for part in (kept, added))
        like = np.concatenate([like, like])
    stays = np.flatnonzero(np.isin(every, kept) | (sources == targets))
    result, origin = np.concatenate([every[stays], added]), np.concatenate([stays, like])
    order = np.argsort(result, kind="stable")
    result, origin = result[order], origin[order]
    noisy = data.clone()
    for name in [name for name in noisy.keys() if name != "edge_index" and noisy.is_edge_attr(name)]:  # noqa: SIM118
        if name in EDGE_VALUES:
            noisy[name] = data[name][torch.from_numpy(origin).to(data[name].device)]
        else:
            del noisy[name]
    noisy.edge_index = torch.from_numpy(np.stack([result // count, result % count])).to(noisy.edge_index.device)
    noisy.num_nodes = count
    return noisy


def _absent(keys: IntArray, count: int, *, wanted: int, symmetric: bool, random: np.random.Generator) -> IntArray:
    """[wanted] keys of edges that do not exist, each once."""
    possible = count * (count - 1) // (2 if symmetric else 1)
    if len(keys) + wanted > possible:
        raise InputError(f"add: {wanted} more edges do not fit; {count} nodes leave room for {possible - len(keys)}.")
    found = np.zeros(0, dtype=np.int64)
    while len(found) < wanted:
        a, b = random.integers(count, size=(2, 2 * wanted))
        if symmetric:
            a, b = np.minimum(a, b), np.maximum(a, b)
        drawn = (a * count + b)[a != b]
        found = np.union1d(found, np.setdiff1d(drawn, keys))
    return random.permutation(found)[:wanted]


def _turned(keys: IntArray, count: int) -> IntArray:
    return keys % count * count + keys // count


def _edges(data: Data) -> tuple[IntArray, int]:
    """Edges [2, E] and the number of nodes, checked, with the values of the edges."""
    if data.num_nodes is None:
        raise InputError("data: has neither x nor num_nodes, so the number of nodes is unknown.")
    count = int(data.num_nodes)
    check_edges(data, count)
    return np.asarray(data.edge_index.cpu().numpy(), dtype=np.int64), count


def node_prior(data: Data, draws: ArrayLike, *, degree: bool = True, label: bool = True) -> FloatArray:
    """λ of each node, [n], from training sets that the attacker thinks likely: by its degree, its class, or both.

    A snowball reaches hubs more often than other nodes, and classes lie together, so that not every node is as likely
    to be a member. Pass the result as the prior: ``Attacker(prior=node_prior(data, draws))``.

    Args:
        data: the graph.
        draws: bool [K, n] such training sets, as `snowball_subset` draws them; not the target's.
        degree: whether nodes of one range of degrees (powers of two) have a prior of their own.
        label: whether nodes of one class have.

    Example:
        >>> path = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0]), num_nodes=3)
        >>> node_prior(path, [[True, True, False], [True, False, False]], label=False).round(2)
        array([0.75, 0.75, 0.  ])
    """
    (_, ends), count = _edges(data)
    members = np.atleast_2d(np.asarray(draws))
    members = as_members(members, (len(members), count), place="draws")
    group = np.zeros(count, dtype=np.int64)
    if degree:
        group = np.ceil(np.log2(1 + np.bincount(ends, minlength=count))).astype(np.int64)
    if label:
        classes = np.unique(data.y.cpu().numpy(), return_inverse=True)[1]
        group = np.unique(group * (1 + classes.max()) + classes, return_inverse=True)[1]
    sizes = np.bincount(group)
    share = np.bincount(group, weights=members.mean(axis=0)) / np.maximum(sizes, 1)
    return np.asarray(share[group], dtype=np.float64)
