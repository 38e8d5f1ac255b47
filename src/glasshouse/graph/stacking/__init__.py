"""What the stacked attack on graphs is made of: answers, features of nodes, and learning in rounds."""

from glasshouse.graph.stacking.answers import Heard, Sampled, hear, sample_signals
from glasshouse.graph.stacking.features import Surroundings, View, node_features
from glasshouse.graph.stacking.learned import Learned, Recipe, learn

__all__ = [
    "Heard",
    "Learned",
    "Recipe",
    "Sampled",
    "Surroundings",
    "View",
    "hear",
    "learn",
    "node_features",
    "sample_signals",
]
