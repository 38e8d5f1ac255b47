"""Flickr's graph and labels with features made from its edges: the 500 features of its file were not available."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse
from torch_geometric.data import Data

from glasshouse.core.randomness import generator
from glasshouse.data.named import data_root
from glasshouse.graph import load_graph
from glasshouse.io.arrays import read_npz

__all__ = ["FLICKR", "experiment_graph"]

FLICKR = "flickr-stand-in"
_HALF = 250  # features of each kind; Flickr has 500


def experiment_graph(name: str) -> Data:
    """A graph by the name that a setting gives: one of `load_graph`, or Flickr with features of our own."""
    if name != FLICKR:
        return load_graph(name)
    raw = data_root() / "flickr" / "raw"
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "flickr" / "raw"
        place.mkdir(parents=True)
        for file in raw.glob("*.*"):
            if file.name != "feats.npy":
                (place / file.name).symlink_to(file.resolve())
        edges = place / "adj_full.npz"
        if edges.exists():  # else what reads the folder says which files to place where
            np.save(place / "feats.npy", _features(edges))
        data = load_graph("flickr", root=scratch)
    data.about = (
        "Flickr's edges and labels; its features are made from the edges, because their file was not available."
    )
    return data


def _features(edges: Path) -> np.ndarray:
    """[n, 500]: each node draws 250 random numbers; its features are their means over its neighbours, once and twice.

    Nodes with the same neighbours have the same features, and a model can tell neighbourhoods apart by them.
    """
    kept = read_npz(edges, only=("indices", "indptr"))
    links = scipy.sparse.csr_matrix((np.ones(len(kept["indices"]), np.float32), kept["indices"], kept["indptr"]))
    links = scipy.sparse.diags((1 / np.maximum(1, np.diff(links.indptr))).astype(np.float32)) @ links
    names = generator(0, "stand-in features").standard_normal((links.shape[0], _HALF), dtype=np.float32)
    once = links @ names
    found = np.hstack([once, links @ once])
    scaled: np.ndarray = (found / found.std(axis=0)).astype(np.float32)
    return scaled
