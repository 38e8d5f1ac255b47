"""Weights and attributes of edges: refused where they would be ignored without a word."""

from __future__ import annotations

from typing import Any

from glasshouse.errors import InputError

__all__ = ["refuse_edge_values"]

_NAMES = ("edge_weight", "edge_attr", "edge_type")


def refuse_edge_values(data: Any) -> None:
    """Refuse a graph with weights, attributes or types of edges: nothing here passes them on to a model.

    Training, queries and toggles would all leave them out, and the figures would be those of another model.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> refuse_edge_values(Data(edge_weight=torch.ones(3)))
        Traceback (most recent call last):
        glasshouse.errors.InputError: data.edge_weight: values of edges are not used yet, so a model that needs them ...
    """
    found = [name for name in _NAMES if getattr(data, name, None) is not None]
    if found:
        raise InputError(
            f"data.{found[0]}: values of edges are not used yet, so a model that needs them would be judged wrongly. "
            f"Say data.{found[0]} = None if the model was trained without them; otherwise it cannot be audited."
        )
