"""A tree whose nodes lead elsewhere crashes the process that asks it; it is refused before it is made."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import skops.io
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from glasshouse import InputError
from glasshouse.pool.compiled import check_trees

X = np.random.default_rng(0).normal(size=(60, 4))
Y = (X[:, 0] > 0).astype(int)
MODELS: dict[str, Any] = {
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "forest": RandomForestClassifier(n_estimators=2, max_depth=2, random_state=0),
    "boosted": HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5),
}


def checked(name: str, change: Callable[[dict[str, Any]], None] | None = None) -> None:
    """Check a stored model whose first array of nodes, and whose schema, were changed."""
    content = skops.io.dumps(MODELS[name].fit(X, Y))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {one: archive.read(one) for one in archive.namelist()}
    arrays = {one: np.load(io.BytesIO(data)) for one, data in files.items() if one.endswith(".npy")}
    first = next(one for one, values in arrays.items() if values.dtype.names)
    held = {"nodes": arrays[first], "schema": files["schema.json"].decode()}
    if change is not None:
        change(held)
    buffer = io.BytesIO()
    np.save(buffer, held["nodes"])
    files |= {first: buffer.getvalue(), "schema.json": held["schema"].encode()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for one, data in files.items():
            archive.writestr(one, data)
    with zipfile.ZipFile(out) as archive:
        check_trees(json.loads(archive.read("schema.json")), archive)


def node(field: str, value: int) -> Callable[[dict[str, Any]], None]:
    return lambda held: held["nodes"][field].__setitem__(0, value)


def fewer(held: dict[str, Any]) -> None:
    held["nodes"] = held["nodes"][:-1]


def wider(held: dict[str, Any]) -> None:
    """The tree says that records have more features than its estimator looks for."""
    at = held["schema"].index('"TupleNode"')
    held["schema"] = held["schema"][:at] + held["schema"][at:].replace('"content": "4"', '"content": "400"', 1)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_as_it_was_stored_is_fine(name: str) -> None:
    checked(name)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("tree", node("left_child", 10**6)),
        ("tree", node("right_child", -5)),
        ("tree", node("left_child", 0)),  # round in a circle
        ("tree", node("feature", 4)),
        ("tree", node("feature", -3)),
        ("tree", fewer),
        ("tree", wider),
        ("forest", node("right_child", 10**6)),
        ("forest", wider),
        ("boosted", node("left", 10**6)),
        ("boosted", node("feature_idx", 4)),
        ("boosted", node("right", 0)),
    ],
)
def test_a_tree_that_leads_elsewhere_is_refused(name: str, change: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises(InputError, match="the estimator: has "):
        checked(name, change)
