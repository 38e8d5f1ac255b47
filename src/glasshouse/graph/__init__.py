"""Audits of graph neural networks: G-BASE, its samplers, and the rule computed a thousand times faster."""

from glasshouse.core.errors import needs_extra as _needs_extra
from glasshouse.io.caches import import_numba as _import_numba

with _needs_extra("glasshouse.graph", package="numba", extra="graph"):
    _import_numba()
with _needs_extra("glasshouse.graph", package="torch_geometric", extra="graph"):
    import torch_geometric as _torch_geometric  # noqa: F401

from glasshouse.graph.attacks.g_base import GBASE as GBASE
from glasshouse.graph.attacks.g_base import TemperedGBASE as TemperedGBASE
from glasshouse.graph.attacks.g_edge import EdgeFeatures as EdgeFeatures
from glasshouse.graph.attacks.g_edge import EdgeInfluence as EdgeInfluence
from glasshouse.graph.attacks.g_edge import EdgePosteriors as EdgePosteriors
from glasshouse.graph.attacks.g_edge import GEdge as GEdge
from glasshouse.graph.attacks.g_stacked import GStacked as GStacked
from glasshouse.graph.attacks.graph_attack import GraphAttack as GraphAttack
from glasshouse.graph.attacks.two_queries import GClassifier as GClassifier
from glasshouse.graph.attacks.two_queries import GRegressed as GRegressed
from glasshouse.graph.audit import audit as audit
from glasshouse.graph.data.attacker_view import node_prior as node_prior
from glasshouse.graph.data.attacker_view import noisy_edges as noisy_edges
from glasshouse.graph.data.attacker_view import snowball_subset as snowball_subset
from glasshouse.graph.data.audited import CandidateEdges as CandidateEdges
from glasshouse.graph.data.audited import candidate_edges as candidate_edges
from glasshouse.graph.data.graph_list import Graphs as Graphs
from glasshouse.graph.data.load import load_graph as load_graph
from glasshouse.graph.data.synthetic import citation_graph as citation_graph
from glasshouse.graph.edge_audit import audit_edges as audit_edges
from glasshouse.graph.edge_scene import EdgeScene as EdgeScene
from glasshouse.graph.layers.layer_type import LayerType as LayerType
from glasshouse.graph.layers.layer_type import register_layer_type as register_layer_type
from glasshouse.graph.models.networks import GNN as GNN
from glasshouse.graph.models.networks import build_gnn as build_gnn
from glasshouse.graph.models.networks import layer_widths as layer_widths
from glasshouse.graph.models.networks import register_network as register_network
from glasshouse.graph.rule.edge_toggles import toggle_edges as toggle_edges
from glasshouse.graph.rule.toggling import toggle_losses as toggle_losses
from glasshouse.graph.sampling.samplers import GroundTruth as GroundTruth
from glasshouse.graph.sampling.samplers import SamplingRequest as SamplingRequest
from glasshouse.graph.sampling.samplers import register_sampler as register_sampler
from glasshouse.graph.scene import Scene as Scene
from glasshouse.graph.training.graph_classifier import GraphClassifierTrainer as GraphClassifierTrainer
from glasshouse.graph.training.grid_search import grid_search as grid_search
from glasshouse.graph.training.minibatches import Neighbors as Neighbors
from glasshouse.graph.training.minibatches import RandomNodes as RandomNodes
from glasshouse.graph.training.private import PrivateGNNTrainer as PrivateGNNTrainer
from glasshouse.graph.training.trainer import GNNTrainer as GNNTrainer
from glasshouse.graph.training.trainer import adam as adam
from glasshouse.graph.training.trainer import sgd as sgd
