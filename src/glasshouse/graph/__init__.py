"""Audits of graph neural networks: G-BASE, its samplers, and the rule computed a thousand times faster."""

from glasshouse.core.errors import needs_extra as _needs_extra
from glasshouse.io.caches import import_numba as _import_numba

with _needs_extra("glasshouse.graph", package="numba", extra="graph"):
    _import_numba()
with _needs_extra("glasshouse.graph", package="torch_geometric", extra="graph"):
    import torch_geometric as _torch_geometric  # noqa: F401

from glasshouse.graph.attacks.g_base import GBASE, TemperedGBASE
from glasshouse.graph.attacks.g_classifier import GClassifier
from glasshouse.graph.attacks.g_edge import EdgeFeatures, EdgeInfluence, EdgePosteriors, GEdge
from glasshouse.graph.attacks.g_regressed import GRegressed
from glasshouse.graph.attacks.g_stacked import GStacked
from glasshouse.graph.attacks.graph_attack import GraphAttack
from glasshouse.graph.audit import audit
from glasshouse.graph.data.attacker_view import node_prior, noisy_edges, snowball_subset
from glasshouse.graph.data.audited import CandidateEdges, candidate_edges
from glasshouse.graph.data.graph_list import Graphs
from glasshouse.graph.data.load import load_graph
from glasshouse.graph.data.synthetic import citation_graph
from glasshouse.graph.edge_audit import audit_edges
from glasshouse.graph.edge_scene import EdgeScene
from glasshouse.graph.layers.layer_type import LayerType, register_layer_type
from glasshouse.graph.models.networks import GNN, build_gnn, layer_widths, register_network
from glasshouse.graph.rule.edge_toggles import toggle_edges
from glasshouse.graph.rule.toggling import toggle_losses
from glasshouse.graph.sampling.samplers import GroundTruth, SamplingRequest, register_sampler
from glasshouse.graph.scene import Scene
from glasshouse.graph.training.graph_classifier import GraphClassifierTrainer
from glasshouse.graph.training.grid_search import grid_search
from glasshouse.graph.training.minibatches import Neighbors, RandomNodes
from glasshouse.graph.training.private import PrivateGNNTrainer
from glasshouse.graph.training.trainer import GNNTrainer, adam, sgd

__all__ = [
    "GBASE",
    "GNN",
    "CandidateEdges",
    "EdgeFeatures",
    "EdgeInfluence",
    "EdgePosteriors",
    "EdgeScene",
    "GClassifier",
    "GEdge",
    "GNNTrainer",
    "GRegressed",
    "GStacked",
    "GraphAttack",
    "GraphClassifierTrainer",
    "Graphs",
    "GroundTruth",
    "LayerType",
    "Neighbors",
    "PrivateGNNTrainer",
    "RandomNodes",
    "SamplingRequest",
    "Scene",
    "TemperedGBASE",
    "adam",
    "audit",
    "audit_edges",
    "build_gnn",
    "candidate_edges",
    "citation_graph",
    "grid_search",
    "layer_widths",
    "load_graph",
    "node_prior",
    "noisy_edges",
    "register_layer_type",
    "register_network",
    "register_sampler",
    "sgd",
    "snowball_subset",
    "toggle_edges",
    "toggle_losses",
]
