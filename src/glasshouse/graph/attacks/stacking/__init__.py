"""What the stacked attack on graphs is made of: answers, features of nodes, and learning in rounds."""

from glasshouse.graph.attacks.stacking.answers import Heard, Sampled, hear, sample_signals
from glasshouse.graph.attacks.stacking.features import SIGNALS, Surroundings, View, node_features
from glasshouse.graph.attacks.stacking.learned import Learned, learn
from glasshouse.graph.attacks.stacking.stage import Stage, Told, set_stage

__all__ = [
    "SIGNALS",
    "Heard",
    "Learned",
    "Sampled",
    "Stage",
    "Surroundings",
    "Told",
    "View",
    "hear",
    "learn",
    "node_features",
    "sample_signals",
    "set_stage",
]
