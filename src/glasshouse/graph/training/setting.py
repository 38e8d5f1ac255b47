"""How training saw the graph: only the members (inductive), or all of it with the members' labels (transductive).

And how often a model is right about some nodes, in either setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.core.outputs import tensor_losses
from glasshouse.graph.data.population import induced
from glasshouse.graph.models.calls import with_edges
from glasshouse.graph.models.networks import model_device
from glasshouse.graph.models.profile import AnyModel, ask_model, evaluation_mode, raw_models

Setting = Literal["inductive", "transductive"]

_CLEARLY = 0.7  # of the loss on the members' own graph; inductive ones are below it only after very short training
_LOWER = 0.8  # of the lowest ratio of models that are known to be inductive (benchmarks/graphs/settings.md)
_FEW = 1e-3  # losses as small as this do not show which graph a model knows, and count as this


def check_setting(setting: str) -> None:
    """Refuse a setting that does not exist."""
    if setting not in ("inductive", "transductive"):
        raise InputError(f'setting: "{setting}" is not known. Use "inductive" or "transductive".')


def fit_ratios(models: Sequence[AnyModel], data: Data, members: BoolArray) -> FloatArray:
    """The mean loss of each model on its members in the whole graph, over that in the graph of the members, [K].

    A model fits best the graph that it was trained on: after inductive training the ratio is above 1, unless training
    was short, and after transductive training below.
    """
    ratios = []
    everybody = np.ones(members.shape[1], dtype=np.bool_)
    for model, who in zip(models, members, strict=True):
        means = []
        for chosen in (everybody, who):
            graph, logits = _answers(model, data, chosen)
            found = tensor_losses(logits, graph.y.clamp(min=0)).cpu().numpy()
            labelled = (graph.y >= 0).cpu().numpy() & who[chosen]
            means.append(max(_FEW, float(found[labelled].mean()) if labelled.any() else 0.0))
        ratios.append(means[0] / means[1])
    return np.array(ratios)


def looks_transductive(ratios: FloatArray, *, inductive: FloatArray | None = None) -> bool:
    """Whether models fit their members so much better in the whole graph that they must have been trained on it.

    All `fit_ratios` of models that were trained by one trainer must show it. How far a ratio is from 1 depends on how
    long models are trained, so those of models that are known to be ``inductive``, if there are any, say what is low.
    """
    low = _CLEARLY if inductive is None else min(_LOWER * float(inductive.min(initial=np.inf)), 1.0)
    return bool(len(ratios)) and float(ratios.max()) < low


def node_accuracy(model: AnyModel, data: Data, nodes: BoolArray, *, setting: Setting = "inductive") -> float:
    """Accuracy on some nodes, bool [n]; NaN if there are none.

    An inductive model is asked about the graph that these nodes induce: members as in training, others without any
    member. A transductive one is asked about the whole graph.
    """
    if not nodes.any():
        return float("nan")
    labels = data.y.cpu().numpy()[nodes]
    right = node_choices(model, data, nodes, setting=setting) == labels
    return float(right[labels >= 0].mean()) if (labels >= 0).any() else float("nan")


def node_choices(model: AnyModel, data: Data, nodes: BoolArray, *, setting: Setting = "inductive") -> IntArray:
    """The class that a model takes for the most likely one, of each of some nodes; arguments as in `node_accuracy`."""
    asked = nodes if setting == "inductive" else np.ones_like(nodes)
    chosen: IntArray = _answers(model, data, asked)[1].argmax(dim=-1).cpu().numpy()
    return chosen[nodes[asked]]


def _answers(model: AnyModel, data: Data, nodes: BoolArray) -> tuple[Data, Tensor]:
    """The graph that some nodes induce, and a model's logits about it."""
    graph = induced(data, nodes, device=model_device(raw_models([model])) or "cpu")
    with evaluation_mode([model]):
        return graph, ask_model(model, with_edges(graph))
