"""Trees in a stored estimator, checked before they are made: scikit-learn follows their numbers without looking.

A node names its children and a feature by number, and compiled code goes there. In a file that a stranger changed, such
a number may lie outside of the tree or of a record, and the process would crash or read what it must not.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError

__all__ = ["check_trees"]

_ENSEMBLES = ("sklearn.ensemble._forest", "sklearn.ensemble._gb", "sklearn.ensemble._hist_gradient_boosting")
_PREDICTOR = "sklearn.ensemble._hist_gradient_boosting.predictor"


def check_trees(schema: Any, archive: zipfile.ZipFile) -> None:
    """Refuse an estimator with a tree whose nodes lead outside of it.

    Args:
        schema: of the skops file.
        archive: the file itself, with its arrays.
    """
    _check_numbers(schema)
    _check(schema, archive, features=None, ensemble=False)


def _check(entry: Any, archive: zipfile.ZipFile, *, features: int | None, ensemble: bool) -> None:
    """Every tree below an entry; ``features`` of the estimator that owns it.

    Each estimator looks at the features that it is given itself. Those of an ensemble of trees do not: the ensemble
    looks once, so all of them must have its number.
    """
    if isinstance(entry, list):
        for one in entry:
            _check(one, archive, features=features, ensemble=ensemble)
    if not isinstance(entry, dict):
        return
    match entry.get("__loader__"):
        case "TreeNode":
            _check_tree(entry, archive, features)
        case "ObjectNode" if entry.get("__module__") == _PREDICTOR:
            _check_predictor(entry, archive, features)
        case "ObjectNode":
            own = _attributes(entry).get("n_features_in_")
            if own is not None:
                count = _value(own, archive)
                _must(isinstance(count, int) and (not ensemble or count == features))
                features = count
            ensemble = ensemble or str(entry.get("__module__")).startswith(_ENSEMBLES)
    for one in entry.values():
        _check(one, archive, features=features, ensemble=ensemble)


def _check_tree(entry: Mapping[str, Any], archive: zipfile.ZipFile, features: int | None) -> None:
    given = _value(entry["__reduce__"]["args"], archive)
    _must(isinstance(given, tuple) and len(given) == 3)
    width, classes, outputs = given
    _must(type(width) is int and type(outputs) is int and width == features and 1 <= outputs <= 1000)
    _must(isinstance(classes, np.ndarray) and classes.dtype == np.intp and classes.shape == (outputs,))
    _must(((classes >= 1) & (classes <= 10**6)).all())
    held = _value(entry["content"], archive)
    _must(isinstance(held, dict) and {"nodes", "values", "node_count", "max_depth"} <= held.keys())
    nodes, values = held["nodes"], held["values"]
    _must(isinstance(nodes, np.ndarray) and nodes.ndim == 1 and len(nodes) >= 1 and held["node_count"] == len(nodes))
    _must(isinstance(values, np.ndarray) and values.shape == (len(nodes), outputs, int(classes.max())))
    leaf = nodes["left_child"] == -1
    _check_nodes(nodes["left_child"], nodes["right_child"], nodes["feature"], leaf, width)


def _check_predictor(entry: Mapping[str, Any], archive: zipfile.ZipFile, features: int | None) -> None:
    """A tree of histogram gradient boosting; it may ask for a category, which is looked up in a table of bits."""
    held = {name: _value(one, archive) for name, one in _attributes(entry).items()}
    nodes, tables = held["nodes"], held["raw_left_cat_bitsets"]
    _must(features is not None and isinstance(nodes, np.ndarray) and nodes.ndim == 1 and len(nodes) >= 1)
    leaf = nodes["is_leaf"] != 0
    _check_nodes(nodes["left"], nodes["right"], nodes["feature_idx"], leaf, features or 0)
    asked = nodes["bitset_idx"][~leaf & (nodes["is_categorical"] != 0)]
    both = [isinstance(one, np.ndarray) and one.ndim == 2 for one in (tables, held["binned_left_cat_bitsets"])]
    _must(all(both) and (asked < len(tables)).all() and (asked < len(held["binned_left_cat_bitsets"])).all())
    _must(tables.shape[1] == held["binned_left_cat_bitsets"].shape[1] == 8)


def _check_nodes(left: NDArray[Any], right: NDArray[Any], feature: NDArray[Any], leaf: Any, width: int) -> None:
    """Children come after their parent, so there is no way round in a circle."""
    inner = np.flatnonzero(~leaf)
    for child in (left[inner].astype(np.int64), right[inner].astype(np.int64)):
        _must(((child > inner) & (child < len(left))).all())
    _must(((feature[inner] >= 0) & (feature[inner] < width)).all())


def _check_numbers(schema: Any) -> None:
    """Entries with one number are one object for skops, which makes only the first of them: they must be alike."""
    seen: dict[str, tuple[Any, Any]] = {}

    def form(entry: Any) -> int:
        """A number for the content of an entry, without the numbers of objects in it."""
        if isinstance(entry, list):
            return hash(("list", *map(form, entry)))
        if not isinstance(entry, dict):
            return hash((type(entry).__name__, entry))
        told = {name: form(one) for name, one in entry.items() if name not in ("__id__", "file")}
        found = hash(tuple(sorted(told.items())))
        if (number := entry.get("__id__")) is not None:
            file = entry.get("file") if entry.get("__loader__") == "NdArrayNode" else None
            if seen.setdefault(str(number), (found, file)) != (found, file):
                raise InputError("the estimator: has two different parts with one number: the file was changed.")
        return found

    form(schema)


def _attributes(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entries of an object's attributes, by name."""
    content = entry.get("content")
    inside = content.get("content") if isinstance(content, dict) else None
    return inside if isinstance(inside, dict) else {}


def _value(entry: Any, archive: zipfile.ZipFile) -> Any:
    """What an entry of plain data holds; anything else is not a part of a tree."""
    match entry["__loader__"]:
        case "JsonNode":
            return json.loads(entry["content"])
        case "TupleNode":
            return tuple(_value(one, archive) for one in entry["content"])
        case "DictNode":
            return {name: _value(one, archive) for name, one in entry["content"].items()}
        case "NdArrayNode" if entry["type"] == "numpy":
            with archive.open(entry["file"]) as file:
                found: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
            return found if entry["__class__"] == "ndarray" else found.item()
    raise InputError(f"the estimator: has a {entry['__loader__']} in a tree: the file was changed.")


def _must(condition: Any) -> None:
    if not condition:
        raise InputError("the estimator: has a tree whose nodes do not fit it: the file was changed.")
