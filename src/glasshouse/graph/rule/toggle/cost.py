"""How long an engine would take, from the question alone: sizes of the graph, of the masks and of the models.

Only orders of magnitude are known. The prediction depends neither on the machine nor on what is kept on its disk, so
that the same question always gets the same engine, and the same bytes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch_geometric.nn import MaxAggregation

from glasshouse.graph.models.asking import manners_of
from glasshouse.graph.models.model import Model
from glasshouse.graph.rule.question import Question

__all__ = ["MODELS_PER_AUDIT", "audit_values", "question_seconds"]

# An attack asks about its target and about eight simulated ones, each with about nine models. The real number of models
# is not used: simulated targets have fewer references than the target, and should get the same engine.
_QUESTIONS, _MODELS = 9, 9
MODELS_PER_AUDIT = _QUESTIONS * _MODELS  # an attack that asks many more says so by more masks
_BLACK_BOX_WIDTH = 64
_GPU = 100  # times as fast as two cores, about
_FEATURE_COST = 4  # a maximum over raw features is taken feature by feature, for all models at once


def audit_values(model: Model, question: Question) -> float:
    """How many numbers change, over all toggles of an audit that asks this about every node, for each of its targets.

    Args:
        model: one of the models, which share a shape.
        question: graph, masks and nodes.

    Example:
        >>> from torch_geometric.data import Data
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> from glasshouse.graph.rule.question import ask
        >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0]))
        >>> question = ask(data, torch.ones(2, 3, dtype=torch.bool), torch.tensor([0, 1]))
        >>> narrow, wide = (build_gnn("gcn", features=3, hidden=width, classes=2) for width in (16, 32))
        >>> audit_values(wide, question) / audit_values(narrow, question)
        2.0
    """
    pairs = len(question.masks) * question.size  # a question about some nodes is one of several, or a check
    width = _width(model) * _MODELS
    if isinstance(model, nn.Module) and any(isinstance(part, MaxAggregation) for part in model.modules()):
        width += _FEATURE_COST * int(question.x.shape[1])
    return _QUESTIONS * pairs * _rows(question, manners_of(model).hops) * width


def question_seconds(audit: float, question: Question, *, models: int) -> float:
    """How long one question takes, from the seconds that an engine predicts for an audit of such questions.

    Args:
        audit: see `Engine.seconds`.
        question: graph, masks and nodes.
        models: how many are asked.

    Example:
        >>> from torch_geometric.data import Data
        >>> from glasshouse.graph.rule.question import ask
        >>> data = Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0, 1]))
        >>> half = ask(data, torch.ones(1, 4, dtype=torch.bool), torch.tensor([0, 1]))
        >>> question_seconds(90.0, half, models=9)
        5.0
    """
    share = len(question.nodes) / max(question.size, 1) * models / _MODELS
    return audit / _QUESTIONS * share / (_GPU if question.x.is_cuda else 1)


def _width(model: Any) -> int:
    """The widest layer of a model, by the rows of its weights."""
    weights = model.parameters() if isinstance(model, nn.Module) else ()
    return max((int(weight.shape[0]) for weight in weights if weight.ndim == 2), default=_BLACK_BOX_WIDTH)


def _rows(question: Question, hops: int) -> float:
    """How many members are within so many steps of a node, on average, if members are spread evenly."""
    share = float(question.masks.float().mean())
    degree = torch.bincount(question.edge_index[0], minlength=question.size).double()
    mean = float(degree.mean()) * share
    growth = float((degree**2).mean() / degree.mean().clamp(min=1e-9)) * share  # a neighbour has more neighbours
    rows = 1 + sum(mean * growth**step for step in range(hops))
    return min(rows, max(share * question.size, 1.0))
