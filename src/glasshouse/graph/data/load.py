"""Graphs by name: the synthetic one that needs no download, PyTorch Geometric's from placed files, and your own."""

from __future__ import annotations

import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch_geometric.datasets as pyg_datasets
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.core.errors import InputError, raise_faults, shortened
from glasshouse.core.escape import visible
from glasshouse.core.registry import did_you_mean
from glasshouse.data import as_ids
from glasshouse.data.named import data_root
from glasshouse.graph.data.checking import check_graph
from glasshouse.graph.data.synthetic import citation_graph
from glasshouse.graph.data.tables import TABLES, graph_from_tables
from glasshouse.graph.models.calls import EDGE_VALUES, edge_values
from glasshouse.io.arrays import check_array, check_sparse, read_npz, read_safetensors
from glasshouse.io.guarded import guarded, read_json

_NEEDED = ("x", "edge_index", "y")
_NUMBERS = (*_NEEDED, *EDGE_VALUES)
ANY_CLASS = "torch_geometric:"
GRAPH_FILES = (".npz", ".safetensors")
_FLICKR = ("adj_full.npz", "feats.npy", "class_map.json", "role.json")
_WHOLE = re.compile(r"[0-9]{1,18}")
_PICKLED = ("Planetoid",)  # classes that read their files with pickle, which can run code in them


@dataclass(frozen=True, kw_only=True)
class _Source:
    """A data set class of PyTorch Geometric, and where under the data root its files are."""

    cls: str  # in torch_geometric.datasets
    folder: str  # given to the class as its root
    subset: str | None = None  # its own folder there, and the class's ``name``
    about: str
    files: str = "Download them from the authors, or let PyTorch Geometric do it elsewhere and copy its raw folder."


_SOURCES = {
    "cora": _Source(cls="Planetoid", folder="planetoid", subset="Cora", about="Cora (citations between papers)."),
    "citeseer": _Source(
        cls="Planetoid", folder="planetoid", subset="CiteSeer", about="CiteSeer (citations between papers)."
    ),
    "pubmed": _Source(cls="Planetoid", folder="planetoid", subset="PubMed", about="PubMed (citations on diabetes)."),
    "flickr": _Source(
        cls="Flickr",
        folder="flickr",
        about="Flickr (images that share metadata; GraphSAINT's version).",
        files="They are GraphSAINT's; feats.npy holds the 89250 x 500 features, without which there is no data set. "
        "PyTorch Geometric's Flickr(root) downloads all four to root/raw. Checksums (sha256) of a public copy, whose "
        "graph has the published 89250 nodes and 899756 edges, begin with 6740dc59750ef52a (adj_full.npz), "
        "2d61641459b53870 (class_map.json) and 0435cfbd69918fa1 (role.json); that of feats.npy is not known to us.",
    ),
    "amazon-photo": _Source(
        cls="Amazon", folder="amazon", subset="Photo", about="Amazon Photo (goods bought together)."
    ),
    "github": _Source(
        cls="GitHub",
        folder="github",
        about="GitHub (MUSAE: developers who follow each other; features as in the file).",
        files="PyTorch Geometric's own address for it is broken. Write it with numpy.savez from MUSAE's files: edges "
        "[E, 2] both ways, features [37700, f], target [37700].",
    ),
}


def graph_names() -> list[str]:
    """Names that `load_graph` knows."""
    return ["synthetic", *_SOURCES]


def unpickles(name: str) -> bool:
    """Whether reading a graph by this name can run code: PyTorch Geometric's class reads its files with pickle."""
    return name.startswith(ANY_CLASS) or (name in _SOURCES and _SOURCES[name].cls in _PICKLED)


def load_graph(
    name_or_path: Any,
    *,
    root: str | Path | None = None,
    edges: Any = None,
    label: str | None = None,
    ids: str | None = None,
    directed: bool = False,
    leave_out: Sequence[str] = (),
) -> Data:
    """A graph by name, from files, or from networkx; nothing is downloaded, and nothing is written beside the files.

    Args:
        name_or_path: one of `graph_names`; ``torch_geometric:CLASS`` or ``torch_geometric:CLASS:NAME`` for any other
            data set of one graph that PyTorch Geometric has, such as ``torch_geometric:Coauthor:CS``, from the folder
            CLASS; or the path of an ``.npz`` or ``.safetensors`` file with ``edge_index`` [2, E], ``x`` [n, features],
            ``y`` [n] (-1 where a label is missing), and optionally ``edge_weight`` [E], ``edge_attr`` [E] or [E, d] and
            ``ids`` [n] (in ``.npz`` only). Large arrays that are not compressed stay in the file, which must then not
            change: float32 features and int64 edges are never copied. Or a table of nodes (csv, parquet, a data frame),
            with ``edges``; or a networkx graph, whose nodes have attributes.
        root: folder of the data sets; ``GLASSHOUSE_DATA`` by default, else ``data`` in the working folder.
        edges: for a table of nodes, that of edges: columns source and target (from, to; else the first two), by the
            nodes' ids, and perhaps weight; or pairs [E, 2].
        label: column or attribute of the labels; by default label, y or class. A node with an empty one has no label.
        ids: column that edges name nodes by; by default the one that has all of their ends.
        directed: whether edges of tables lead one way; otherwise each is taken in both directions.
        leave_out: columns that are not features.

    Returns:
        The graph: ``x`` float32 [n, features], ``edge_index`` int64 [2, E], ``y`` int64 [n], -1 where a label is
        missing; ``edge_weight`` and ``edge_attr`` if the edges have them (float32, or int64 for features that are whole
        numbers); with ``about``, a sentence for readers of figures that names what is made up, and ``ids``, a list of
        n names, if the file has them. Audits report both.

    Example:
        >>> data = load_graph("synthetic")
        >>> data.num_nodes, data.about[:26]
        (2000, 'A synthetic citation graph')
        >>> nodes = {"paper": ["a", "b", "c"], "words": [3, 1, 2], "label": ["AI", "AI", "DB"]}
        >>> load_graph(nodes, edges=[["a", "b"], ["b", "c"]]).edge_index.tolist()
        [[0, 1, 1, 2], [1, 0, 2, 1]]
    """
    if not isinstance(name_or_path, str | Path) or Path(name_or_path).suffix.lower() in TABLES:
        return graph_from_tables(name_or_path, edges, label=label, ids=ids, directed=directed, leave_out=leave_out)
    name = str(name_or_path)
    if name.endswith(GRAPH_FILES):
        return _from_file(Path(name))
    if name == "synthetic":
        data = citation_graph()
        data.about = "A synthetic citation graph from a seeded generator; its papers and words are made up."
        return data
    if name.startswith(ANY_CLASS):
        cls, _, subset = name.removeprefix(ANY_CLASS).partition(":")
        source = _Source(cls=cls, folder=cls, subset=subset or None, about=f"{cls} {subset}".strip() + ".")
    elif name in _SOURCES:
        source = _SOURCES[name]
    else:
        hint, known = did_you_mean(name, graph_names()), ", ".join(graph_names())
        raise InputError(f'"{name}" is not a graph.{hint} Known: {known}, {ANY_CLASS}CLASS, or an .npz file.')
    loaded = _from_pyg(name, source, Path(root) if root is not None else data_root())
    data = _standard(name, **{field: getattr(loaded, field, None) for field in _NUMBERS})
    data.about = source.about
    return data


def _from_pyg(name: str, source: _Source, root: Path) -> Any:
    """The graph as PyTorch Geometric's own class reads it from the raw files.

    The class writes what it has processed next to the raw files, which may be read-only, and would read without a check
    what someone else has left there. So it works in a temporary folder that only links to the raw files and is removed
    afterwards. (For the Planetoid files it uses pickle, which is their upstream format.)
    """
    cls = getattr(pyg_datasets, source.cls, None)
    if not isinstance(cls, type):
        hint = did_you_mean(source.cls, pyg_datasets.__all__)
        raise InputError(f'"{source.cls}" is not a data set of torch_geometric.{hint}')
    place = root / source.folder
    if source.cls in _CHECKS:
        _CHECKS[source.cls](place / (source.subset or "") / "raw")
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about old file formats; the user cannot change them
        _point_at(place, Path(scratch))
        offline = type(source.cls, (cls,), {"download": _refusal(source, place, Path(scratch)), "log": _silent})
        try:
            found = offline(scratch, name=source.subset) if source.subset else offline(scratch)
        except InputError:
            raise
        except (TypeError, AssertionError) as error:
            raise InputError(
                f"{name}: cannot be loaded like this ({str(error) or 'no such name'}). "
                f"A class that has several graphs is loaded as {ANY_CLASS}{source.cls}:NAME."
            ) from error
        except Exception as error:
            raise InputError(f"{place}: torch_geometric cannot read these files ({error!r}).") from error
        if len(found) != 1:
            raise InputError(f"{name}: holds {len(found)} graphs; an audit takes the nodes of one.")
        return found[0]


def _check_amazon(raw: Path) -> None:
    """Refuse what PyTorch Geometric and scipy would follow without looking; a missing file is named by others."""
    for file in raw.glob("*.npz"):
        nodes, _ = check_sparse(file, name="attr_", dense=True)
        _check_square(file, "adj_shape", check_sparse(file, name="adj_"), nodes)
        labels = read_npz(file, only=["labels"]).get("labels")
        if labels is None or labels.shape != (nodes,) or labels.dtype.kind not in "iu":
            raise InputError(f"{file}: labels: are not one whole number for each of {nodes} nodes.")


def _check_flickr(raw: Path) -> None:
    """As above, for GraphSAINT's four files."""
    edges, features, classes, roles = (raw / name for name in _FLICKR)
    if not edges.is_file():
        return
    nodes, columns = check_sparse(edges)
    _check_square(edges, "shape", (nodes, columns), nodes)
    if features.is_file() and (len(shape := check_array(features)) != 2 or shape[0] != nodes):
        raise InputError(f"{features}: has shape {shape} for {nodes} nodes; place GraphSAINT's file again.")
    if classes.is_file():
        found = read_json(classes)
        _check_nodes(classes, "", [int(key) if _WHOLE.fullmatch(key) else None for key in found], nodes)
        if not all(type(label) is int and 0 <= label < max(2, nodes) for label in found.values()):
            raise InputError(f"{classes}: some classes are not whole numbers; place GraphSAINT's file again.")
    if roles.is_file():
        for role, listed in read_json(roles).items():
            _check_nodes(roles, f"{role}: ", listed, nodes)


def _check_square(file: Path, name: str, shape: tuple[int, int], nodes: int) -> None:
    if shape != (nodes, nodes):
        raise InputError(f"{file}: {name}: is {shape[0]} x {shape[1]} for {nodes} nodes; edges need {nodes} x {nodes}.")


def _check_nodes(file: Path, role: str, listed: Any, nodes: int) -> None:
    whole = isinstance(listed, list) and all(type(node) is int and 0 <= node < nodes for node in listed)
    if not whole:
        raise InputError(f"{file}: {shortened(role, quoted=False)}names nodes outside 0 to {nodes - 1}.")


def _check_github(raw: Path) -> None:
    """Refuse pickled objects, which PyTorch Geometric would load from this file, and arrays that do not fit."""
    for file in raw.glob("*.npz"):
        read_npz(file)


_CHECKS: dict[str, Callable[[Path], None]] = {"Amazon": _check_amazon, "Flickr": _check_flickr, "GitHub": _check_github}


def _point_at(source: Path, target: Path) -> None:
    """Mirror a folder by links, without the processed files."""
    for file in source.rglob("*") if source.is_dir() else ():
        inside = file.relative_to(source)
        if file.is_file() and "processed" not in inside.parts:
            link = target / inside
            link.parent.mkdir(parents=True, exist_ok=True)
            try:
                link.symlink_to(file.resolve())
            except OSError:  # where links are not allowed
                shutil.copyfile(file, link)


def _refusal(source: _Source, place: Path, scratch: Path) -> Callable[[Any], None]:
    """Replaces a data set's own ``download``: it reports which files to place where."""

    def download(self: Any) -> None:
        missing = [Path(path).relative_to(scratch) for path in self.raw_paths if not Path(path).exists()]
        if missing:
            raise InputError(
                *(f"{place / path}: there is no such file." for path in missing),
                f"Place the files of {source.about.rstrip('.')} there, or set GLASSHOUSE_DATA. {source.files}",
            )

    return download


_silent = property(lambda _: False, lambda _, __: None)  # the class would print that it is processing


def _from_file(path: Path) -> Data:
    """A graph from an ``.npz`` or ``.safetensors`` file, every field checked; large ones stay in the file."""
    wanted, tensors = (*_NUMBERS, "ids"), path.suffix == ".safetensors"
    fields = read_safetensors(path, only=wanted) if tensors else read_npz(path, only=wanted, mapped=_NUMBERS)
    needed = "Save edge_index [2, E], x [n, features] and y [n]."
    raise_faults([f"{path}: {name}: is missing. {needed}" for name in _NEEDED if name not in fields])
    numbers = {name: fields[name] for name in _NUMBERS if name in fields}
    odd = {name: array.dtype for name, array in numbers.items() if array.dtype.kind not in "biuf"}
    raise_faults([f"{path}: {name}: is of type {dtype}; save numbers." for name, dtype in odd.items()])
    with guarded(path, what="a graph"):
        data = _standard(str(path), **{name: torch.from_numpy(_native(array)) for name, array in numbers.items()})
    data.about = f"{visible(path.name)} ({len(data.x)} nodes, {data.num_edges} edges)."
    if "ids" in fields:
        data.ids = as_ids(fields["ids"], len(data.x), place=f"{path}: ids").tolist()
    return data


def _native(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in a type that torch knows on every platform, without a copy of float32, float64 and int64."""
    wide = np.float32 if array.dtype.itemsize <= 4 else np.float64
    return array.astype({"f": wide, "b": np.bool_}.get(array.dtype.kind, np.int64), copy=False)


def _standard(place: str, /, x: Any, edge_index: Any, y: Any, **of_edges: Tensor | None) -> Data:
    """The graph as `load_graph` promises it, or what is wrong with it."""
    for field, value in zip(_NEEDED, (x, edge_index, y), strict=True):
        if not isinstance(value, Tensor):
            raise InputError(f"{place}: {field}: is missing; an audit needs features, edges and labels.")
    x = x.to_dense().float()
    if 0 in x.shape:
        raise InputError(f"{place}: x: has shape {tuple(x.shape)}; give one row per node, [n, features].")
    y = y.reshape(-1) if y.ndim == 2 and y.shape[1] == 1 else y
    edge_index = edge_index if edge_index.numel() else edge_index.long()  # without edges, the type says nothing
    loaded = Data(x=x, edge_index=edge_index, y=y, **of_edges)
    check_graph(loaded, place=f"{place}: ")
    y = torch.where(y.isnan(), -1, y).long().clamp(min=-1)
    if not 0 <= int(y.max()) < max(len(x), 2):
        raise InputError(f"{place}: y: its largest label is {int(y.max())}; number the classes 0, 1, 2, ...")
    values = {name: value.contiguous() for name, value in edge_values(loaded).items()}
    return Data(x=x.contiguous(), edge_index=edge_index.long().contiguous(), y=y.contiguous(), **values)
