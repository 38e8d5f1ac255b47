"""A graph from a table of nodes and one of edges (csv, parquet, data frames), or from networkx."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from glasshouse.core.arrays import FloatArray, IntArray, TextArray
from glasshouse.core.errors import InputError, shortened
from glasshouse.core.escape import visible
from glasshouse.data import as_ids
from glasshouse.evidence.tables import EMPTY, read_text_table
from glasshouse.io.limits import check_memory

TABLES = (".csv", ".tsv", ".txt", ".parquet")
_LABELS = ("label", "y", "class")
_ENDS = (("source", "target"), ("from", "to"), ("src", "dst"))
_MOST = 100  # different texts of a column that become a feature each
_NAMED = 8  # columns that a message lists

_NODE = "(node)"  # the column of the nodes' own names; no attribute is called so

Columns = dict[str, list[str]]


def graph_from_tables(
    nodes: Any, edges: Any, *, label: str | None, ids: str | None, directed: bool, leave_out: Sequence[str]
) -> Data:
    """What `load_graph` makes of two tables, or of a networkx graph, which has both."""
    place = visible(Path(nodes).name) if isinstance(nodes, str | Path) else f"the {type(nodes).__name__} of nodes"
    if hasattr(nodes, "adj") and hasattr(nodes, "is_directed"):
        place, directed = "the networkx graph", directed or bool(nodes.is_directed())
        table, ends = _of_networkx(nodes)
        ids = _NODE
    elif edges is None:
        raise InputError(f"edges: missing; {place} has the nodes. Give load_graph(nodes, edges=…), a table of pairs.")
    else:
        table, ends = _cells(nodes), _cells(edges)
    if lost := [name for name in (ids, label, *leave_out) if name is not None and name not in table]:
        raise InputError(f"{place}: has no column {lost[0]!r}. {_listed(table)}")
    own = label or next((name for name in _LABELS if name in table), None)
    if own is None:
        raise InputError(f"{place}: which column holds the labels? Give label=…. {_listed(table)}")
    sources, targets, weights = _ends(ends)
    key = ids or _key(table, {*sources, *targets}, place)
    names = as_ids(table[key], len(table[key]), place=f"{place}: {key}")
    features = {name: cells for name, cells in table.items() if name not in (key, own, *leave_out)}
    x, remade = _features(features, len(names), place)
    edge_index = _positions(names, sources, targets, place)
    about = [f"{place} ({len(names)} nodes, {edge_index.shape[1]} edges in the table).", *remade]
    weight = None if weights is None else _numbers(weights)
    if weights is not None and (weight is None or np.isnan(weight).any()):
        raise InputError("edges: weight: some cells are not numbers. Write a number in each, or rename the column.")
    if not directed:
        edge_index, first = np.unique(np.concatenate([edge_index, edge_index[::-1]], axis=1), axis=1, return_index=True)
        weight = None if weight is None else np.concatenate([weight, weight])[first]
        about.append("Each edge is there in both directions, once; for other models say directed=True.")
    y, classes = _labels(table[own])
    data = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(edge_index), y=torch.from_numpy(y))
    if weight is not None:
        data.edge_weight = torch.from_numpy(weight.astype(np.float32))
    data.ids, data.classes, data.about = names.tolist(), classes, " ".join(about)
    return data


def _cells(given: Any) -> Columns:
    """The cells of a table as text: of a file, a data frame of any library, or a mapping of columns; or of pairs."""
    if isinstance(given, str | Path):
        return read_text_table(Path(given)).columns
    if hasattr(given, "columns"):
        return {str(name): [_cell(value) for value in given[name]] for name in given.columns}
    if isinstance(given, Mapping):
        return {str(name): [_cell(value) for value in column] for name, column in given.items()}
    pairs = np.asarray(given)
    pairs = pairs.T if pairs.ndim == 2 and len(pairs) == 2 and pairs.shape[1] != 2 else pairs
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError(f"edges: shape {pairs.shape}; give a table, or pairs of nodes, [E, 2].")
    return {"source": [_cell(value) for value in pairs[:, 0]], "target": [_cell(value) for value in pairs[:, 1]]}


def _cell(value: Any) -> str:
    """As a file would hold it: whole numbers without a point."""
    return str(int(value)) if isinstance(value, float | np.floating) and float(value).is_integer() else str(value)


def _of_networkx(graph: Any) -> tuple[Columns, Columns]:
    """Nodes with their attributes, of which a list of numbers is one column per entry, and edges with their weights."""
    table: Columns = {_NODE: [str(node) for node in graph.nodes]}
    for name in dict.fromkeys(name for _, held in graph.nodes(data=True) for name in held):
        values = [held.get(name) for _, held in graph.nodes(data=True)]
        if np.ndim(values[0]) == 1:
            for at, column in enumerate(np.asarray(values, dtype=object).T):
                table[f"{name} {at}"] = [_cell(value) for value in column]
        else:
            table[str(name)] = [_cell(value) for value in values]
    pairs = list(graph.edges(data=True))
    ends = {"source": [str(one) for one, _, _ in pairs], "target": [str(other) for _, other, _ in pairs]}
    if any("weight" in held for _, _, held in pairs):
        ends["weight"] = [_cell(held.get("weight")) for _, _, held in pairs]
    return table, ends


def _listed(columns: Mapping[str, Any]) -> str:
    names = ", ".join(repr(name) for name in list(columns)[:_NAMED])
    return f"Columns: {names}{' …' if len(columns) > _NAMED else ''}."


def _ends(edges: Columns) -> tuple[list[str], list[str], list[str] | None]:
    """Where edges begin and end, by the usual names of columns or else the first two; and their weights."""
    if len(edges) < 2:
        raise InputError(f"edges: need two columns, from where and to where. {_listed(edges)}")
    lower = {name.lower(): name for name in edges}
    names = next((pair for pair in _ENDS if all(name in lower for name in pair)), None)
    one, other = list(edges)[:2] if names is None else [lower[name] for name in names]
    return edges[one], edges[other], edges[lower["weight"]] if "weight" in lower else None


def _key(table: Columns, ends: set[str], place: str) -> str:
    """The column that edges name nodes by: the only one that has each of their ends, and no value twice."""
    able = [name for name, cells in table.items() if len(set(cells)) == len(cells) and ends <= set(cells)]
    usual = [name for name in able if name.lower() in ("id", "ids", "node", "node_id", "name")]
    if len(usual or able) != 1:
        which = f"columns {able[:2]} both could be" if able else "no column has all ends of the edges"
        raise InputError(f"{place}: by which column do edges name the nodes? {which}. Give ids=…. {_listed(table)}")
    return (usual or able)[0]


def _positions(names: TextArray, sources: list[str], targets: list[str], place: str) -> IntArray:
    """[2, E] the edges by the positions of their nodes."""
    at = {name: position for position, name in enumerate(names.tolist())}
    if lost := [name for name in (*sources, *targets) if name not in at]:
        raise InputError(
            f"edges: {len(lost)} ends are no node of {place}, first {shortened(lost[0])}. Drop those edges."
        )
    return np.array([[at[name] for name in ends] for ends in (sources, targets)], dtype=np.int64).reshape(2, -1)


def _numbers(cells: list[str]) -> FloatArray | None:
    """[n] numbers, NaN where a cell is empty; None if a cell is text."""
    try:
        return np.array([np.nan if cell.lower() in EMPTY else float(cell) for cell in cells])
    except ValueError:
        return None


def _features(columns: Columns, count: int, place: str) -> tuple[NDArray[np.float32], list[str]]:
    """Features [n, F] float32 and what was done: one per number, one per value of a text, one for empty cells."""
    if not columns:
        raise InputError(
            f"{place}: has no column of features besides ids and labels. Models need some, such as degrees."
        )
    blocks, texts, filled = [], [], []
    for name, cells in columns.items():
        values = _numbers(cells)
        if values is None:
            different = sorted(set(cells))
            if len(different) > _MOST:
                raise InputError(
                    f"{place}: {name}: has {len(different)} different texts. Encode them as numbers, or leave the "
                    f"column out: leave_out=[{name!r}]."
                )
            texts.append(name)
            blocks += [np.array([cell == one for cell in cells], dtype=np.float64) for one in different]
            continue
        empty = np.isnan(values)
        if empty.any():
            filled.append(name)
            blocks.append(empty.astype(np.float64))
            values = np.where(empty, values[~empty].mean() if not empty.all() else 0.0, values)
        blocks.append(values)
    check_memory(12 * count * len(blocks), place=place, what="its features may take")
    x = np.stack(blocks, axis=1).astype(np.float32)
    if not np.isfinite(x).all():
        raise InputError(f"{place}: a feature is infinite in float32. Write smaller numbers.")
    said = {
        "Text became one feature per value": texts,
        "Empty cells hold the mean, and are marked by a feature": filled,
    }
    return x, [f"{what}: {', '.join(names[:_NAMED])}." for what, names in said.items() if names]


def _labels(cells: list[str]) -> tuple[IntArray, list[str]]:
    """[n] numbers of classes, -1 where a cell is empty, and the classes' names: in the order of numbers if they are."""
    given = [cell for cell in cells if cell.lower() not in EMPTY]
    values = _numbers(given)
    key = None if values is None else float
    order = sorted(set(given), key=key)
    at = {name: number for number, name in enumerate(order)}
    return np.array([at.get(cell, -1) for cell in cells], dtype=np.int64), order
