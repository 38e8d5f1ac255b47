"""What the stacked attack on graphs is made of: answers of models, features of nodes, and learning in rounds."""

from glasshouse.graph.attacks.stacking.answers import PlainAnswers, SampledAnswers, plain_answers, sampled_answers
from glasshouse.graph.attacks.stacking.features import SIGNALS, GraphContext, TargetSignals, node_features
from glasshouse.graph.attacks.stacking.learned import Learned, learn
from glasshouse.graph.attacks.stacking.pool_signals import PoolSignals, SampledSignals, ask_pool

__all__ = [
    "SIGNALS",
    "GraphContext",
    "Learned",
    "PlainAnswers",
    "PoolSignals",
    "SampledAnswers",
    "SampledSignals",
    "TargetSignals",
    "ask_pool",
    "learn",
    "node_features",
    "plain_answers",
    "sampled_answers",
]
