"""The one place where graphs are checked: all faults are reported at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError, raise_faults
from glasshouse.core.numerics import not_finite
from glasshouse.graph.models.calls import EDGE_VALUES
from glasshouse.graph.models.tensor_cache import remembered

_LOOSE = "is not a torch tensor; make it one with torch.as_tensor."
_WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


class CheckedGraph(Data):  # type: ignore[misc]
    """A graph without faults: who is given one does not check it again; see `checked_graph`."""


def checked_graph(data: Any) -> CheckedGraph:
    """The same graph as one that was checked, for an audit; its tensors are those of ``data``.

    A node without a label has -1.
    """
    if isinstance(data, CheckedGraph):
        return data
    raise_faults(graph_faults(data, labelled=True))
    graph: CheckedGraph = CheckedGraph.from_dict(data.to_dict())
    missing = ~(graph.y >= 0)  # NaN is not >= 0 either
    if bool(missing.any()):
        graph.y = graph.y.masked_fill(missing, -1).long()
    return graph


def labelled_nodes(data: Data) -> slice | IntArray:
    """Where the nodes with a label are, ascending: all of them, or positions [L]; the others are never audited."""
    found = (data.y >= 0).cpu().numpy()
    return slice(None) if found.all() else np.flatnonzero(found).astype(np.int64)


def with_context(chances: FloatArray, data: Data, members: BoolArray, *, odds: bool = False) -> FloatArray:
    """Chances of membership, or log-odds, [n] in which nodes without a label are fixed: all models [K, n] saw them."""
    context = (data.y < 0).cpu().numpy()
    if not context.any():
        return chances
    known = members.all(axis=0).astype(np.float64)
    return np.where(context, np.where(known, np.inf, -np.inf) if odds else known, chances)


def check_graph(data: Any, *, nodes: ArrayLike | None = None, place: str = "data.") -> None:
    """Refuse a graph that models cannot be trained on or asked about; see `graph_faults`."""
    if not isinstance(data, CheckedGraph):
        raise_faults(graph_faults(data, nodes=nodes, place=place))


def check_edges(data: Any, count: int) -> None:
    """Refuse edges [2, E] that do not fit ``count`` nodes, or values that do not fit the edges; check nothing else."""
    edge_index = getattr(data, "edge_index", None)
    if edge_index is None:
        raise InputError("data.edge_index: is missing; give edges [2, E].")
    raise_faults(_edge_faults(edge_index, count, "data."))
    raise_faults(_edge_value_faults(data, edge_index.shape[1], "data."))


def graph_faults(
    data: Any,
    *,
    labelled: bool = False,  # whether there must be labels of two classes or more, as in an audit
    nodes: ArrayLike | None = None,  # [n] true for nodes whose features are used, such as members; all by default
    place: str = "data.",  # written before the name of a part: this, or a file
) -> list[str]:
    """What is wrong with a graph, one line per fault; empty if it is correct.

    A label below 0 (or NaN) means that a node has none; training and toggles can work with that.
    """
    parts = {name: getattr(data, name, None) for name in ("x", "edge_index", "y")}
    if missing := [name for name, value in parts.items() if value is None]:
        advice = ""
        if getattr(data, "edge_label_index", None) is not None:
            advice = " Models of links are audited by pairs: Population(features_of_pairs, edge_label)."
        elif hasattr(data, "ndata"):
            advice = " Of DGL's g: Data(x=g.ndata['feat'], edge_index=torch.stack(g.edges()), y=g.ndata['label'])."
        return [f"{place}{name}: is missing; x, edge_index and y are all needed.{advice}" for name in missing]
    if loose := [name for name, value in parts.items() if not isinstance(value, Tensor)]:
        return [f"{place}{name}: {_LOOSE}" for name in loose]
    x, edge_index, y = data.x, data.edge_index, data.y
    faults = _feature_faults(x, nodes, place)
    if x.ndim:  # else the number of nodes is unknown
        faults += [*_edge_faults(edge_index, len(x), place), *_label_faults(y, len(x), place, labelled=labelled)]
    if edge_index.ndim == 2:  # else the number of edges is unknown
        faults += _edge_value_faults(data, edge_index.shape[1], place)
    return faults


def _feature_faults(x: Tensor, nodes: ArrayLike | None, place: str) -> list[str]:
    if x.layout is not torch.strided:
        return [f"{place}x: is sparse; give a dense matrix, such as data.x.to_dense()."]
    if x.ndim != 2:
        return [f"{place}x: has shape {tuple(x.shape)}; give one row per node, [n, features]."]
    # Models work in float32, where 1e300 is infinite. If the sum is finite, so is each of them; graphs are checked for
    # each model's members and for each query.
    if remembered(x, "finite sum", lambda: bool(torch.isfinite(x.float().sum()))):
        return []
    bad = not_finite(x.detach().float().cpu().numpy())
    if nodes is not None and np.shape(nodes) == bad.shape:
        bad &= np.asarray(nodes, dtype=np.bool_)
    if bad.any():
        advice = "fill it in first, such as by data.x = data.x.nan_to_num()."
        return [f"{place}x: node {int(bad.argmax())} has a NaN or infinite feature; {advice}"]
    return []


def _edge_faults(edge_index: Tensor, count: int, place: str) -> list[str]:
    whole = edge_index.layout is torch.strided and edge_index.dtype in _WHOLE
    if not whole or edge_index.ndim != 2 or len(edge_index) != 2:
        return [
            f"{place}edge_index: has shape {tuple(edge_index.shape)} and type {edge_index.dtype}; give whole numbers "
            f"in two rows, from where and to where."
        ]
    if edge_index.numel() and not (int(edge_index.min()) >= 0 and int(edge_index.max()) < count):
        return [f"{place}edge_index: names nodes outside 0 to {count - 1}; drop those edges."]
    return []


def _edge_value_faults(data: Any, edges: int, place: str) -> list[str]:
    found = ((name, _value_fault(name, getattr(data, name, None), edges)) for name in EDGE_VALUES)
    return [f"{place}{name}: {fault}" for name, fault in found if fault]


def _value_fault(name: str, value: Any, edges: int) -> str:
    """What is wrong with the values of edges; empty if nothing is, or if there are none."""
    if value is None:
        return ""
    if not isinstance(value, Tensor):
        return _LOOSE
    if value.layout is not torch.strided or not (value.is_floating_point() or value.dtype in _WHOLE):
        return f"has type {value.dtype} and layout {value.layout}; give a dense tensor of numbers."
    if name == "edge_type" and (value.is_floating_point() or value.ndim != 1):
        return (
            f"has type {value.dtype} and shape {tuple(value.shape)}; give the number of its kind per edge, [{edges}]."
        )
    wide = name != "edge_weight"
    if not 1 <= value.ndim <= 1 + wide or len(value) != edges:
        wanted = f"[{edges}] or [{edges}, d]" if wide else f"[{edges}]"
        return f"has shape {tuple(value.shape)} for {edges} edges; give one entry per edge, {wanted}."
    finite = torch.isfinite(value.float())
    bad = ~(finite if value.ndim == 1 else finite.all(dim=1))
    if bool(bad.any()):  # looked at where the values lie, which may be a GPU
        return f"edge {int(bad.long().argmax())} has a NaN or infinite value; fill it in first."
    return ""


def _label_faults(y: Tensor, count: int, place: str, *, labelled: bool) -> list[str]:
    if y.shape != (count,):
        advice = " Use data.y.squeeze(1)." if y.shape == (count, 1) else ""  # as in OGB
        if y.ndim == 2 and y.shape[1] > 1 and len(y) == count:
            advice = " Nodes with several labels: audit(data, loss=MultiLabelLoss(), trainer=your_function, …)."
        return [f"{place}y: has shape {tuple(y.shape)} for {count} nodes; give one class per node, [{count}].{advice}"]
    given = y[~torch.isnan(y)]
    if not bool((given == given.long()).all()):
        advice = " A regression: audit(data, loss=GaussianLoss(scale=…), trainer=your_function, …)."
        return [f"{place}y: some labels are not whole numbers; give each node the number of its class.{advice}"]
    if labelled and len(torch.unique(y[y >= 0])) < 2:
        return [f"{place}y: all nodes have one label, or none; a classifier needs two or more."]
    return []
