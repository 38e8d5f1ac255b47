"""How training saw the graph: only the members (inductive), or all of it with the members' labels (transductive)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from torch_geometric.data import Data

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.errors import InputError
from glasshouse.graph.data.induced import induced
from glasshouse.graph.models.asking import ask_model, quiet
from glasshouse.graph.models.model import Model, model_device
from glasshouse.losses import tensor_losses

__all__ = ["Setting", "check_setting", "fit_ratios", "looks_transductive"]

Setting = Literal["inductive", "transductive"]

_CLEARLY = 0.7  # of the loss on the members' own graph; inductive ones are below it only after very short training
_LOWER = 0.8  # of the lowest ratio of models that are known to be inductive (benchmarks/settings.md)
_FEW = 1e-3  # losses as small as this do not show which graph a model knows, and count as this


def check_setting(setting: str) -> None:
    """Refuse a setting that does not exist.

    Example:
        >>> check_setting("inductiv")
        Traceback (most recent call last):
        glasshouse.errors.InputError: setting: "inductiv" is not known. Use "inductive" or "transductive".
    """
    if setting not in ("inductive", "transductive"):
        raise InputError(f'setting: "{setting}" is not known. Use "inductive" or "transductive".')


def fit_ratios(models: Sequence[Model], data: Data, members: BoolArray) -> FloatArray:
    """The mean loss of each model on its members in the whole graph, over that in the graph of the members, [K].

    A model fits best the graph that it was trained on: after inductive training the ratio is above 1, unless training
    was short, and after transductive training below.

    Args:
        models: K models.
        data: the graph.
        members: [K, n] which nodes trained which model.

    Example:
        >>> import torch
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> unsure_alone = lambda x, edges: x * len(x)
        >>> fit_ratios([unsure_alone], data, np.array([[True, False]])).round(1)
        array([0.4])
    """
    ratios = []
    everybody = np.ones(members.shape[1], dtype=np.bool_)
    for model, who in zip(models, members, strict=True):
        device = model_device([model]) or "cpu"
        means = []
        for chosen in (everybody, who):
            graph = induced(data, chosen, device=device)
            with quiet([model]):
                found = tensor_losses(ask_model(model, graph.shown()), graph.y.clamp(min=0)).cpu().numpy()
            labelled = (graph.y >= 0).cpu().numpy() & who[chosen]
            means.append(max(_FEW, float(found[labelled].mean()) if labelled.any() else 0.0))
        ratios.append(means[0] / means[1])
    return np.array(ratios)


def looks_transductive(ratios: FloatArray, *, inductive: FloatArray | None = None) -> bool:
    """Whether models fit their members so much better in the whole graph that they must have been trained on it.

    Args:
        ratios: `fit_ratios` of models that were trained by one trainer; all must show it.
        inductive: those of models of which it is known that they saw only their members. How far a ratio is from 1
            depends on how long models are trained, so they say what is low; None if no such models are known.

    Example:
        >>> looks_transductive(np.array([0.8])), looks_transductive(np.array([0.8]), inductive=np.array([1.3, 1.4]))
        (False, True)
    """
    low = _CLEARLY if inductive is None else min(_LOWER * float(inductive.min(initial=np.inf)), 1.0)
    return bool(len(ratios)) and float(ratios.max()) < low
