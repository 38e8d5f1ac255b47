"""A list of graphs, such as molecules, as the records of a population."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.data import Batch, Data, Dataset, HeteroData

from glasshouse.core.arrays import FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.data import Population, register_records
from glasshouse.graph.data.checking import check_edges
from glasshouse.graph.models.calls import bind_graph_call, check_apart

_MOST = 1 << 18  # nodes and edges of a batch of queries: 128 MiB of hidden values of width 128 per layer
_LOOK = 8  # graphs that show whether a model keeps graphs apart
_NAMES = ("y", "idx", "id", "ids", "batch", "ptr")  # a graph's label and names; no part of what it is
_ADVICE = (
    "each of them is a record. Call glasshouse.audit(Population(graphs), trainer=GraphClassifierTrainer(…)), with "
    "GraphClassifierTrainer from glasshouse.graph"
)


class Graphs(Sequence[Data]):
    """Graphs as records: what `Population` makes of a list of `Data`, or of a dataset of PyTorch Geometric.

    An index gives one graph; a mask, a slice or an array of positions gives `Graphs`, which PyTorch Geometric's
    ``DataLoader`` takes, so a training function of your own may use ``DataLoader(population.x[members])``.

    Args:
        graphs: N graphs, each with its own nodes and edges.

    Example:
        >>> pair = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([1]))
        >>> single = Data(x=torch.ones(1, 2), edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.tensor([0]))
        >>> graphs = Graphs([pair, single, pair])
        >>> graphs.labels(), len(graphs[np.array([True, False, True])])
        (array([1, 0, 1]), 2)
    """

    def __init__(self, graphs: Any) -> None:
        nodes = "its nodes are the records. Call glasshouse.graph.audit"
        if isinstance(graphs, Batch):
            graphs = graphs.to_data_list()
        elif isinstance(graphs, Data | HeteroData):
            raise InputError(f"population: one graph; {nodes}(data, trainer=…).")
        self._graphs: list[Data] = list(graphs)
        if len(self._graphs) == 1:
            raise InputError(f"population: it holds one graph; {nodes}(graphs[0], trainer=…).")
        _check_graphs(self._graphs)

    @property
    def shape(self) -> tuple[int, ...]:
        """``(N,)``."""
        return (len(self._graphs),)

    @property
    def advice(self) -> str:
        """What to write where a list of graphs is given in place of a population."""
        return f"{len(self)} graphs; {_ADVICE}"

    def __len__(self) -> int:
        return len(self._graphs)

    def __repr__(self) -> str:
        return f"Graphs({len(self)})"

    @overload
    def __getitem__(self, rows: int) -> Data: ...
    @overload
    def __getitem__(self, rows: Any) -> Any: ...
    def __getitem__(self, rows: Any) -> Any:
        """One graph by its position; some by a mask [N], by positions or by a slice."""
        if isinstance(rows, int | np.integer):
            return self._graphs[rows]
        part = object.__new__(Graphs)  # its graphs are checked already, and one alone is fine
        part._graphs = [self._graphs[row] for row in np.arange(len(self))[rows]]
        return part

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: numpy would take graphs apart in silence."""
        raise InputError(
            "population: graphs are not rows of numbers. Train with glasshouse.graph.GraphClassifierTrainer, or with "
            "your own function (population, members, seed) -> model."
        )

    def labels(self) -> NDArray[Any]:
        """[N] the graphs' own ``y``, one whole number each."""
        return np.array([_label(graph, place) for place, graph in enumerate(self._graphs)])

    def contents(self) -> Iterator[bytes]:
        """Each graph's tensors, as they are stored: the same graph with its nodes or edges in another order differs."""
        for graph in self._graphs:
            held = {name: graph[name] for name in sorted(graph.keys()) if name not in _NAMES}
            arrays = {name: one.detach().cpu().numpy() for name, one in held.items() if isinstance(one, Tensor)}
            heads = [f"{name} {value.dtype} {value.shape}" for name, value in arrays.items()]
            head = f"{graph.num_nodes} nodes; {'; '.join(heads)}".encode()
            yield b"\0".join([head, *(np.ascontiguousarray(value).tobytes() for value in arrays.values())])

    def features(self) -> FloatArray:
        """[N, F] of each graph: how many nodes and edges it has, and the means of its features."""
        means = [(_means(graph, "x"), _means(graph, "edge_attr")) for graph in self._graphs]
        nodes, edges = (max((len(pair[at]) for pair in means), default=0) for at in (0, 1))
        found = np.zeros((len(self), 2 + nodes + edges))
        for row, graph, (x, edge_attr) in zip(found, self._graphs, means, strict=True):
            row[:2] = graph.num_nodes, graph.num_edges
            row[2 : 2 + len(x)] = x
            row[2 + nodes : 2 + nodes + len(edge_attr)] = edge_attr
        return found

    def batches(self, size: int) -> Iterator[IntArray]:
        """Positions for one query each: at most ``size`` graphs and 2¹⁸ nodes and edges, but always one graph.

        Example:
            >>> graphs = Graphs([Data(num_nodes=nodes) for nodes in (2**17, 2**17, 1)])
            >>> first, second = graphs.batches(10)
            >>> first, second
            (array([0, 1]), array([2]))
        """
        start = weight = 0
        for row, graph in enumerate(self._graphs):
            own = int(graph.num_nodes or 0) + graph.num_edges
            if row > start and (row - start == size or weight + own > _MOST):
                yield np.arange(start, row)
                start, weight = row, 0
            weight += own
        yield np.arange(start, len(self))

    def batch(self, *, device: torch.device | str = "cpu") -> Batch:
        """All graphs side by side, as PyTorch Geometric batches them, without their labels."""
        return Batch.from_data_list(self._graphs, exclude_keys=["y"]).to(device)

    def asker(self, model: Callable[..., Any], *, device: str | None = None) -> Callable[[Any], Any]:
        """A function that asks a model about a part of these graphs, in evaluation mode.

        The first graphs are also asked about apart from the others: an answer that depends on the other graphs of a
        batch is refused.
        """
        weights = next(model.parameters(), None) if isinstance(model, nn.Module) else None
        place = torch.device(device or (weights.device if weights is not None else "cpu"))
        if isinstance(model, nn.Module):
            model = model.to(place).eval()
        look = self[:_LOOK].batch(device=place)
        call = bind_graph_call(model, look)
        with torch.inference_mode():
            check_apart(lambda batch: call.tried(model, batch), call.tried(model, look), self[:2].batch(device=place))

        def ask(graphs: Graphs) -> Any:
            with torch.inference_mode():
                return call(model, graphs.batch(device=place))

        return ask


def check_one_graph(data: Any) -> None:
    """Refuse several graphs, or a population, in place of the one graph whose nodes are audited."""
    if isinstance(data, Population):
        raise InputError("data: a Population of records. Call glasshouse.audit(population, trainer=…).")
    if isinstance(data, Data) and not isinstance(data, Batch):
        return
    if isinstance(data, Dataset | list | tuple) and len(data) == 1 and isinstance(data[0], Data):
        raise InputError("data: it holds one graph. Call glasshouse.graph.audit(data[0], trainer=…).")
    if isinstance(data, Batch | Dataset | list | tuple):
        raise InputError(f"data: a list of graphs; {_ADVICE}.")


def _check_graphs(graphs: Sequence[Any]) -> None:
    """Refuse what is not a list of plain graphs with the same fields."""
    for place, graph in enumerate(graphs):
        if not isinstance(graph, Data):
            raise InputError(
                f"population: record {place} is a {type(graph).__name__}, not a torch_geometric.data.Data; graphs with "
                f"several kinds of nodes or edges are not audited."
            )
        try:
            if graph.edge_index is not None:
                check_edges(graph, int(graph.num_nodes or 0))
        except InputError as error:
            raise InputError(*[f"population: graph {place}: {fault}" for fault in error.faults]) from None
        if isinstance(graph.x, Tensor) and graph.x.is_floating_point() and not bool(torch.isfinite(graph.x).all()):
            raise InputError(f"population: graph {place} has a NaN or infinite feature; fill it in first.")
        if graph.num_nodes == 0:
            raise InputError(f"population: graph {place} has no nodes; leave it out.")
    forms = [_form(graph) for graph in graphs]
    for place, form in enumerate(forms):
        if odd := form.keys() ^ forms[0].keys():
            raise InputError(
                f"population: graphs 0 and {place} do not both have {', '.join(sorted(odd))}; give all graphs the same "
                f"fields."
            )
        for name, rows in form.items():
            if rows != forms[0][name]:
                raise InputError(
                    f"population: the {name} of graph {place} has rows of {rows}, that of graph 0 of {forms[0][name]}; "
                    f"give all graphs the same number and type of features."
                )


def _form(graph: Data) -> dict[str, str]:
    """The fields of a graph, and of what shape and type their rows are, where they are rows."""
    form = dict.fromkeys((name for name in sorted(graph.keys()) if name != "y" and graph[name] is not None), "")
    for name in form.keys() & {"x", "edge_attr", "edge_weight", "pos"}:
        value = graph[name]
        is_tensor = isinstance(value, Tensor)
        form[name] = f"shape {list(value.shape[1:])} and type {value.dtype}" if is_tensor else type(value).__name__
    return form


def _label(graph: Data, place: int) -> Any:
    """A graph's label; whole numbers alone, since others are not classes."""
    y = graph.y
    if y is None:
        raise InputError(f"population: graph {place} has no y; give labels: Population(graphs, labels), one per graph.")
    values = y.detach().cpu().reshape(-1).numpy() if isinstance(y, Tensor) else np.asarray(y).reshape(-1)
    if values.size != 1:
        nodes = values.size == graph.num_nodes
        kind = "one per node: labels of nodes, not of the graph" if nodes else "several tasks"
        raise InputError(
            f"population: the y of graph {place} has {values.size} entries, {kind}. Give one label per graph: "
            f"Population(graphs, labels)."
        )
    if values.dtype.kind == "f":
        if np.isnan(values[0]):
            raise InputError(f"population: graph {place} has no label (its y is NaN); leave it out.")
        if values[0] != round(float(values[0])):
            raise InputError(
                f"population: the y of graph {place} is {values[0]:g}, which is not a class. Give classes: "
                f"Population(graphs, labels), one per graph."
            )
        return int(values[0])
    return values[0].item()


def _means(graph: Data, name: str) -> FloatArray:
    """[F] the mean of each column of a graph's features; empty without any."""
    value = graph.get(name, None)
    if not isinstance(value, Tensor) or not value.numel():
        return np.empty(0)
    return np.asarray(value.detach().cpu().double().reshape(len(value), -1).mean(0).numpy())


for _kind in (Data, HeteroData, Batch, Dataset):
    register_records(_kind, Graphs)
