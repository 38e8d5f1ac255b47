"""Graphs of the sizes of public ones whose files were not at hand: with hubs, with wide features, and Flickr's."""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data

from glasshouse.data.named import data_root


def _edges(size: int, pairs: int, *, exponent: float, offset: float, random: np.random.Generator) -> torch.Tensor:
    """Undirected edges [2, 2 * pairs]; node i is drawn in proportion to (i + offset) ** -exponent, then renamed."""
    share = (np.arange(size) + offset) ** -exponent
    total = np.cumsum(share / share.sum())
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < pairs:
        ends = np.minimum(np.searchsorted(total, random.random((2, pairs))), size - 1)
        low, high = ends.min(0), ends.max(0)
        keys = np.unique(np.concatenate([keys, (low * size + high)[low != high]]))
    keys = random.permutation(keys)[:pairs]
    edges = torch.from_numpy(random.permutation(size)[np.stack([keys // size, keys % size])])
    return torch.cat([edges, edges.flip(0)], dim=1)


def hub_graph(seed: int = 0) -> Data:
    """169 343 nodes, 2.3 million directed edges, largest degree 3 552, 128 features, 40 classes."""
    random = np.random.default_rng(seed)
    size = 169_343
    edges = _edges(size, 1_157_799, exponent=0.62, offset=3.9, random=random)
    x = torch.from_numpy(random.standard_normal((size, 128), dtype=np.float32))
    return Data(x=x, edge_index=edges, y=torch.from_numpy(random.integers(0, 40, size)))


def hubs(nodes: int, *, degree: int = 14, features: int = 32, classes: int = 8, seed: int = 0) -> Data:
    """A graph of any size that is made in the way of `hub_graph`: its hubs have more edges the larger it is."""
    random = np.random.default_rng(seed)
    edges = _edges(nodes, nodes * degree // 2, exponent=0.62, offset=3.9, random=random)
    y = random.integers(0, classes, nodes)
    x = random.standard_normal((nodes, features), dtype=np.float32)
    x[:, :classes] += np.eye(classes, dtype=np.float32)[y]  # something to learn
    return Data(x=torch.from_numpy(x), edge_index=edges, y=torch.from_numpy(y))


def two_step_paths(data: Data, seed: int = 0) -> tuple[int, int]:
    """Directed edges between members, and what the rule needs: the sum of two-hop neighbourhoods, as paths.

    Members are a random half. A path leads from a node that is toggled to a member beside it, and from there to one of
    its members: two layers change the answers of all ends, and each path is one message that changes.
    """
    size = int(data.num_nodes or 0)
    inside = np.random.default_rng(seed).permutation(size) < size // 2
    start, end = data.edge_index.numpy()
    within = inside[start] & inside[end]
    degree = np.bincount(start[within], minlength=size)  # members beside a member
    return int(within.sum()), int(degree[end[inside[end]]].sum())


def wide_graph(seed: int = 0) -> Data:
    """34 493 nodes, 495 924 directed edges, 8 415 features of which a node has 33 on average, 5 classes."""
    random = np.random.default_rng(seed)
    size, words = 34_493, 8_415
    edges = _edges(size, 247_962, exponent=0.5, offset=20.0, random=random)
    x = torch.zeros(size, words)
    often = 1 / (np.arange(words) + 50.0)
    row = np.repeat(np.arange(size), random.poisson(33, size))
    x[row, random.choice(words, len(row), p=often / often.sum())] = 1.0
    return Data(x=x, edge_index=edges, y=torch.from_numpy(random.integers(0, 5, size)))


def flickr_graph(seed: int = 0) -> Data:
    """The edges of Flickr, if they are under ``GLASSHOUSE_DATA``, with made-up labels and features [n, 500].

    About half of the entries are zero, and each of 7 classes has a mean of its own. Without the file the edges
    are made up too: as many, 899 756, between as many nodes, 89 250.
    """
    random = np.random.default_rng(seed)
    path = data_root() / "flickr" / "raw" / "adj_full.npz"
    if path.exists():
        stored = np.load(path)
        start, receiver = torch.from_numpy(stored["indptr"]).long(), torch.from_numpy(stored["indices"]).long()
        edges = torch.stack([torch.repeat_interleave(start.diff()), receiver])
        size = len(start) - 1
    else:
        size = 89_250
        edges = _edges(size, 449_878, exponent=0.62, offset=3.9, random=random)
    y = random.integers(0, 7, size)
    means = random.standard_normal((7, 500), dtype=np.float32) / 4
    x = np.maximum(random.standard_normal((size, 500), dtype=np.float32) + means[y], 0)
    return Data(x=torch.from_numpy(x), edge_index=edges, y=torch.from_numpy(y))
