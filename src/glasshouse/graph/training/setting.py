"""How training saw the graph: only the members (inductive), or all of it with the members' labels (transductive)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from torch_geometric.data import Data

from glasshouse.arrays import BoolArray
from glasshouse.errors import InputError
from glasshouse.graph.data.induced import induced
from glasshouse.graph.models.asking import ask_model, quiet
from glasshouse.graph.models.model import Model, model_device
from glasshouse.losses import tensor_losses

__all__ = ["Setting", "check_setting", "looks_transductive"]

Setting = Literal["inductive", "transductive"]

_CLEARLY = 0.7  # of the loss on the members' own graph; the lowest of 62 inductive models on Cora had 0.73
_FEW = 1e-3  # losses as small as this do not show which graph a model knows


def check_setting(setting: str) -> None:
    """Refuse a setting that does not exist.

    Example:
        >>> check_setting("inductiv")
        Traceback (most recent call last):
        glasshouse.errors.InputError: setting: "inductiv" is not known. Use "inductive" or "transductive".
    """
    if setting not in ("inductive", "transductive"):
        raise InputError(f'setting: "{setting}" is not known. Use "inductive" or "transductive".')


def looks_transductive(models: Sequence[Model], data: Data, members: BoolArray) -> bool:
    """Whether all models fit their members clearly better in the whole graph than in the graph of the members.

    A model fits best the graph that it was trained on. For inductive training this is the graph of its members.

    Args:
        models: K models that were trained by one trainer.
        data: the graph.
        members: [K, n] which nodes trained which model.
    """
    whole, alone = [], []
    everybody = np.ones(members.shape[1], dtype=np.bool_)
    for model, who in zip(models, members, strict=True):
        device = model_device([model]) or "cpu"
        means = []
        for chosen in (everybody, who):
            graph = induced(data, chosen, device=device)
            with quiet([model]):
                found = tensor_losses(ask_model(model, graph.shown()), graph.y.clamp(min=0)).cpu().numpy()
            means.append(float(found[who[chosen]].mean()))
        whole.append(means[0])
        alone.append(means[1])
    return all(a < _CLEARLY * b and b > _FEW for a, b in zip(whole, alone, strict=True)) and bool(models)
