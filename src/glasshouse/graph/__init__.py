"""Audits of graph neural networks: G-BASE, its samplers, and the rule computed a thousand times faster."""

try:
    import numba as _numba  # noqa: F401
    import torch_geometric as _torch_geometric  # noqa: F401
except ImportError as _error:
    from glasshouse.errors import MissingExtraError as _MissingExtraError

    raise _MissingExtraError("glasshouse.graph", package=str(_error.name), extra="graph") from None

from glasshouse.graph.attack import GraphAttack
from glasshouse.graph.audit import audit
from glasshouse.graph.best import GraphBest
from glasshouse.graph.datasets import load_graph
from glasshouse.graph.gbase import GBASE
from glasshouse.graph.gnn import GNN, build_gnn
from glasshouse.graph.grid_search import grid_search
from glasshouse.graph.hop_classifier import HopClassifier
from glasshouse.graph.regressed import GRegressed
from glasshouse.graph.scene import Scene
from glasshouse.graph.splits import noisy_edges, snowball_subset
from glasshouse.graph.stacked_attack import GStacked
from glasshouse.graph.stacked_sampler import stacked_samples as _stacked_samples  # noqa: F401 (it registers itself)
from glasshouse.graph.synthetic import citation_graph
from glasshouse.graph.toggle import toggle_losses
from glasshouse.graph.trainer import GNNTrainer

__all__ = [
    "GBASE",
    "GNN",
    "GNNTrainer",
    "GRegressed",
    "GStacked",
    "GraphAttack",
    "GraphBest",
    "HopClassifier",
    "Scene",
    "audit",
    "build_gnn",
    "citation_graph",
    "grid_search",
    "load_graph",
    "noisy_edges",
    "snowball_subset",
    "toggle_losses",
]
