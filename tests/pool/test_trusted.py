"""A pool that somebody changed: nothing in it runs, and nothing in it is read as what it is not."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skops.io
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from glasshouse import InputError, Population, SklearnTrainer, TorchTrainer
from glasshouse.pool import ShadowPool
from glasshouse.pool.description import digest_of
from glasshouse.pool.storing import restored, stored
from glasshouse.pool.trusted import strange_names
from glasshouse.training import mlp

RANDOM = np.random.default_rng(0)
POPULATION = Population(RANDOM.normal(size=(30, 3)).astype(np.float32), np.arange(30) % 2)
Schema = dict[str, Any]


def reduced(module: str, name: str, *arguments: str) -> Schema:
    """An entry that calls a function when it is read."""
    values = [
        {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(one)}
        for one in arguments
    ]
    inside = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode", "content": values}
    return {"__class__": name, "__module__": module, "__loader__": "ConstructorFromReduceNode", "content": inside}


def keyed(module: str, name: str, argument: str) -> Schema:
    """A dictionary whose kind of key is a function, which is called with each key."""
    kind = {"__class__": name, "__module__": module, "__loader__": "TypeNode"}
    kinds = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": [kind]}
    value = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": "1"}
    inside = {argument: value}
    return {
        "__class__": "dict",
        "__module__": "builtins",
        "__loader__": "DictNode",
        "content": inside,
        "key_types": kinds,
    }


def edited(content: bytes, change: Callable[[Schema], None]) -> bytes:
    """A skops file with another schema."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "schema.json":
                schema = json.loads(data)
                change(schema)
                data = json.dumps(schema).encode()
            new.writestr(name, data)
    return buffer.getvalue()


def vouch(folder: Path, content: bytes, **manifest: Any) -> None:
    """Put a skops file into a pool as its first model, with the right checksum."""
    (folder / "model-00000.skops").write_bytes(content)
    path = folder / "model-00000.json"
    known = json.loads(path.read_text()) | {"sha256": hashlib.sha256(content).hexdigest(), **manifest}
    known.pop("manifest_sha256", None)
    path.write_text(json.dumps(known | {"manifest_sha256": digest_of(known)}))


def attacks(marker: Path) -> dict[str, Schema]:
    code = f"open({str(marker)!r}, 'w').close()"
    return {
        "exec": reduced("builtins", "exec", code),
        "eval": reduced("builtins", "eval", code),
        "exec as a kind of key": keyed("builtins", "exec", code),
        "os.system": reduced("os", "system", f"touch {marker}"),
        "a function of numpy": reduced("numpy", "savetxt", str(marker), "1"),
        "a function of numpy's tests": reduced("numpy.testing", "rundocs", str(marker)),
        "a method": {
            "__class__": "str",
            "__module__": "builtins",
            "__loader__": "MethodNode",
            "content": {"obj": reduced("builtins", "str", "x"), "func": "upper"},
        },
    }


@pytest.mark.parametrize("name", list(attacks(Path("marker"))))
def test_a_changed_estimator_in_a_pool_runs_nothing_and_is_refused(tmp_path: Path, name: str) -> None:
    pool = ShadowPool.plan(
        POPULATION, SklearnTrainer(estimator=LogisticRegression()), shadows=2, folder=tmp_path / "pool"
    )
    pool.train()
    marker = tmp_path / "marker"
    entry = attacks(marker)[name]
    whole = (tmp_path / "pool" / "model-00000.skops").read_bytes()
    vouch(tmp_path / "pool", edited(whole, lambda schema: schema["content"]["content"].update(coef_=entry)))
    with pytest.raises(InputError, match=r"pool: model 0: names .* It was not read"):
        list(pool)
    assert not marker.exists()


def poisoned(marker: Path) -> bytes:
    fitted = LogisticRegression().fit(POPULATION.x, POPULATION.y)
    entry = attacks(marker)["exec"]
    return edited(skops.io.dumps(fitted), lambda schema: schema["content"]["content"].update(coef_=entry))


def test_a_pool_of_torch_models_is_never_read_as_estimators(tmp_path: Path) -> None:
    trainer = TorchTrainer(module=mlp(3, 2, hidden=(4,)), epochs=1, device="cpu")
    pool = ShadowPool.plan(POPULATION, trainer, shadows=2, folder=tmp_path / "pool")
    pool.train()
    vouch(tmp_path / "pool", poisoned(tmp_path / "marker"), kind="sklearn")
    with pytest.raises(InputError, match='is of kind "sklearn", but models of this trainer are of kind torch'):
        list(pool)
    assert not (tmp_path / "marker").exists()


def test_a_pool_of_graph_models_is_never_read_as_estimators(tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric")
    from glasshouse.graph import GNNTrainer, citation_graph

    data = citation_graph(nodes=120, classes=3)
    pool = ShadowPool.plan(data, GNNTrainer(hidden=4, epochs=1, device="cpu"), shadows=2, folder=tmp_path / "pool")
    pool.train()
    vouch(tmp_path / "pool", poisoned(tmp_path / "marker"), kind="sklearn")
    with pytest.raises(InputError, match='is of kind "sklearn", but models of this trainer are of kind torch'):
        list(pool)
    assert not (tmp_path / "marker").exists()


def test_a_trainer_that_restores_must_give_modules() -> None:
    class Odd:
        def restore(self, population: Any, tensors: Any) -> Any:
            return None

    with pytest.raises(InputError, match="made a LogisticRegression and not a torch module"):
        stored(LogisticRegression().fit(POPULATION.x, POPULATION.y), Odd(), POPULATION, {})


TREE = DecisionTreeClassifier(max_depth=2)


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        SGDClassifier(loss="log_loss"),
        GaussianNB(),
        TREE,
        RandomForestClassifier(3, random_state=np.random.RandomState(0)),
        BaggingClassifier(KNeighborsClassifier(1), 2),
        KNeighborsClassifier(3, algorithm="ball_tree", metric="manhattan"),
        GradientBoostingClassifier(n_estimators=2),
        HistGradientBoostingClassifier(max_iter=2),
        MLPClassifier((3,), max_iter=2),
        CalibratedClassifierCV(SVC(), cv=2),
        VotingClassifier([("a", LogisticRegression()), ("b", TREE)], voting="soft"),
        StackingClassifier([("a", LogisticRegression()), ("b", TREE)], final_estimator=GaussianNB(), cv=2),
        make_pipeline(FunctionTransformer(np.arctan), StandardScaler(), LogisticRegression()),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_estimators_of_scikit_learn_are_stored_whole(estimator: Any) -> None:
    trainer = SklearnTrainer(estimator=estimator)
    model = trainer(POPULATION, np.ones(30, dtype=bool), 0)
    found = stored(model, trainer, POPULATION, {})
    assert found.kind == "sklearn"
    again = restored(found.kind, found.content, trainer, POPULATION)
    assert (again.predict_proba(POPULATION.x) == model.predict_proba(POPULATION.x)).all()


@pytest.mark.parametrize("function", [np.load, np.savetxt, np.vectorize(abs), exec, print, json.loads])
def test_an_estimator_that_holds_any_other_function_keeps_its_answers_only(function: Any) -> None:
    try:
        content = skops.io.dumps(make_pipeline(FunctionTransformer(function), LogisticRegression()))
    except (TypeError, ValueError):
        return
    assert strange_names(content)


def test_a_file_that_is_no_archive_is_refused() -> None:
    with pytest.raises(InputError, match="is not a complete archive: its end is missing. Delete"):
        restored("sklearn", b"not an archive", None, POPULATION)
