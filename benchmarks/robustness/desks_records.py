"""Desks of records: tables, libraries, models over a wire, torch modules, and audits without a trainer."""

from __future__ import annotations

import functools
import json
import tempfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from desks import QUICK, Found, cross_entropy, desk, softmax_losses
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC, LinearSVC

from glasshouse import (
    Attacker,
    LabelOnly,
    MultiLabelLoss,
    MultiOutputLoss,
    Population,
    RemoteModel,
    SklearnTrainer,
    TorchTrainer,
    audit,
    audit_evidence,
    read_evidence,
)

N = 240
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 5))
Y = (X[:, 0] + RANDOM.normal(size=N) > 0).astype(int)
Y3 = np.digitize(X[:, 0] + RANDOM.normal(size=N), [-0.5, 0.5])
IN = RANDOM.permutation(N) < N // 2
FRAME = pd.DataFrame(
    {
        "age": X[:, 0],
        "income": np.where(RANDOM.random(N) < 0.2, np.nan, X[:, 1]),
        "town": RANDOM.choice(["Ulm", "Bonn"], N),
    }
)
TREES = RandomForestClassifier(20, random_state=0)
STEP = 1 / 20 / 2  # half a vote of TREES: an exact 0 or 1 counts as this much less, for the truth as in the audit


def fitted(estimator: Any, x: Any = X, y: Any = Y, members: Any = IN, *, clip: float = 0.0, **population: Any) -> Found:
    """An estimator's audit beside its own ``predict_proba``."""
    data = Population(x, y, **population)
    rows = np.flatnonzero(members)
    model = clone(estimator).fit(x.iloc[rows] if hasattr(x, "iloc") else np.asarray(x)[rows], np.asarray(y)[rows])
    result = audit(data, model=model, members=members, trainer=estimator, **QUICK)
    chance = np.zeros((len(data), len(data.classes)))
    chance[:, np.searchsorted(data.classes, model.classes_)] = model.predict_proba(x)
    return Found(result, cross_entropy(np.clip(chance, max(clip, 1e-300), 1 - clip), data.y), members)


for _name, _estimator, _clip in [
    ("HistGradientBoosting", HistGradientBoostingClassifier(max_iter=10), 0.0),
    ("random forest", TREES, STEP),
    ("extra trees", ExtraTreesClassifier(20, random_state=0), STEP),
    ("k-NN", KNeighborsClassifier(5), 0.1),
    ("calibrated classifier", CalibratedClassifierCV(LinearSVC(), cv=3), 0.0),
]:
    desk("tables", _name)(functools.partial(fitted, _estimator, clip=_clip))


@desk("tables", "ColumnTransformer, missing values, categories")
def _columns() -> Found:
    numbers = make_pipeline(
        SimpleImputer(),
    )
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["town"]), (numbers, ["age", "income"]))
    return fitted(make_pipeline(encoder, LogisticRegression()), FRAME)


@desk("tables", "LinearSVC and SVC, no probabilities")
def _margins() -> Found:
    model = SVC(C=100).fit(X[IN], Y[IN])
    margin = model.decision_function(X)
    result = audit(Population(X, Y), model=model, members=IN, trainer=SVC(C=100), **QUICK)
    return Found(result, softmax_losses(np.stack([0 * margin, margin], axis=1), Y), IN)


@desk("tables", "multi-label")
def _multi_label() -> Found:
    y = np.stack([Y, (X[:, 1] > 0).astype(int)], axis=1)
    model = KNeighborsClassifier(5).fit(X[IN], y[IN])
    chance = np.stack([one[:, 1] for one in model.predict_proba(X)], axis=1).clip(0.1, 0.9)

    def train(population: Any, members: Any, seed: int) -> Any:
        return KNeighborsClassifier(5).fit(population.x[members], population.y[members])

    smooth: Any = lambda model: lambda x: np.stack([one[:, 1] for one in model.predict_proba(x)], axis=1).clip(0.1, 0.9)  # noqa: E731
    result = audit(
        Population.for_loss(X, y),
        model=smooth(model),
        members=IN,
        trainer=lambda population, members, seed: smooth(train(population, members, seed)),
        loss=MultiLabelLoss(),
        **QUICK,
    )
    return Found(result, -np.log(np.where(y == 1, chance, 1 - chance)).sum(axis=1), IN)


@desk("tables", "multi-output")
def _multi_output() -> Found:
    y = np.stack([Y, Y3], axis=1)
    model = MultiOutputClassifier(LogisticRegression()).fit(X[IN], y[IN])
    result = audit(
        Population.for_loss(X, y),
        model=model,
        members=IN,
        trainer=SklearnTrainer(estimator=MultiOutputClassifier(LogisticRegression())),
        loss=MultiOutputLoss(),
        **QUICK,
    )
    one, other = model.predict_proba(X)
    return Found(result, cross_entropy(one, Y) + cross_entropy(other, Y3), IN)


@desk("tables", "99:1 imbalance")
def _rare() -> Found:
    x = np.random.default_rng(1).normal(size=(4000, 5))
    return fitted(LogisticRegression(), x, (np.arange(4000) % 100 == 0).astype(int), np.arange(4000) % 3 > 0)


@desk("tables", "ten records")
def _ten() -> Found:
    return fitted(LogisticRegression(), X[:10], np.arange(10) % 2, np.arange(10) % 4 < 2)


@desk("tables", "100 000 records")
def _many() -> Found:
    x = np.random.default_rng(1).normal(size=(100_000, 5))
    y = (x[:, 0] > np.random.default_rng(2).normal(size=len(x))).astype(int)
    return fitted(LogisticRegression(), x, y, np.arange(len(x)) % 2 == 0)


for _name, _labels in [
    ("text labels", np.where(Y == 1, "yes", "no")),
    ("bool labels", Y == 1),
    ("1-based labels", Y3 + 1),
    ("a class absent among members", np.where(~IN & (np.arange(N) % 9 == 0), 2, Y)),
]:
    desk("tables", _name)(functools.partial(fitted, LogisticRegression(), y=_labels))


@desk("tables", "duplicates")
def _duplicates() -> Found:
    x, y, members = np.concatenate([X, X[:40]]), np.concatenate([Y, Y[:40]]), np.concatenate([IN, IN[:40]])
    return fitted(LogisticRegression(), x, y, members)


@desk("tables", "sample weights")
def _weights() -> Found:
    weights = RANDOM.random(N) + 0.1
    model = LogisticRegression().fit(X[IN], Y[IN], sample_weight=weights[IN])
    trainer = SklearnTrainer(estimator=LogisticRegression(), weights=weights)
    return Found(
        audit(Population(X, Y), model=model, members=IN, trainer=trainer, **QUICK),
        cross_entropy(model.predict_proba(X), Y),
        IN,
    )


@desk("tables", "patients with several rows")
def _patients() -> Found:
    return fitted(LogisticRegression(), members=(np.arange(N) // 4) % 2 == 0)


@desk("tables", "time split")
def _time() -> Found:
    return fitted(LogisticRegression(), members=np.arange(N) < 150)


@desk("tables", "undersampled majority")
def _undersampled() -> Found:
    return fitted(LogisticRegression(), members=IN & ((Y == 1) | (np.arange(N) % 3 == 0)))


@desk("tables", "string index as ids")
def _index() -> Found:
    frame = FRAME[["age"]].set_axis([f"p{number}" for number in range(N)])
    model = LogisticRegression().fit(frame[IN], Y[IN])
    who = frame.index[IN].to_numpy()
    result = audit(Population(frame, Y), model=model, members=who, trainer=LogisticRegression(), **QUICK)
    return Found(result, cross_entropy(model.predict_proba(frame), Y), IN)


# libraries


def native(make: Callable[[Any, Any], Any], ask: Callable[[Any], Any], *, logits: bool = False, y: Any = Y) -> Found:
    """The audit of a model as it is, and of shadow models made by the same function, beside its own answers."""
    model = make(X[IN], y[IN])
    train = lambda population, members, seed: make(population.x[members], population.y[members])  # noqa: E731
    result = audit(Population(X, y), model=model, members=IN, trainer=train, **QUICK)
    return Found(result, (softmax_losses if logits else cross_entropy)(ask(model), y), IN)


@desk("libraries", "XGBoost Booster")
def _xgboost() -> Found:
    import xgboost

    make = lambda x, y: xgboost.train({"objective": "binary:logistic", "nthread": 1}, xgboost.DMatrix(x, y), 10)  # noqa: E731
    return native(make, lambda model: model.predict(xgboost.DMatrix(X)))


@desk("libraries", "LightGBM Booster")
def _lightgbm() -> Found:
    import lightgbm

    settings = {"objective": "multiclass", "num_class": 3, "verbose": -1, "num_threads": 1}
    return native(
        lambda x, y: lightgbm.train(settings, lightgbm.Dataset(x, y), 10), lambda model: model.predict(X), y=Y3
    )


@desk("libraries", "CatBoost, native")
def _catboost() -> Found:
    import catboost

    settings = {
        "loss_function": "Logloss",
        "iterations": 10,
        "verbose": False,
        "allow_writing_files": False,
        "thread_count": 1,
    }
    return native(
        lambda x, y: catboost.CatBoost(settings).fit(x, y),
        lambda model: model.predict(X, prediction_type="Probability"),
    )


@desk("libraries", "statsmodels Logit")
def _statsmodels() -> Found:
    import statsmodels.api as sm

    return native(
        lambda x, y: sm.Logit(y, sm.add_constant(x)).fit(disp=0), lambda model: model.predict(sm.add_constant(X))
    )


@desk("libraries", "ONNX session")
def _onnx() -> Found:
    import onnxruntime
    from skl2onnx import to_onnx

    def make(x: Any, y: Any) -> Any:
        graph = to_onnx(LogisticRegression().fit(x, y), x[:1].astype(np.float32)).SerializeToString()
        return onnxruntime.InferenceSession(graph)

    def ask(session: Any) -> Any:
        rows = session.run(None, {session.get_inputs()[0].name: X.astype(np.float32)})[1]
        return np.array([[row[0], row[1]] for row in rows]) if isinstance(rows, list) else rows

    return native(make, ask)


@desk("libraries", "JAX function")
def _jax() -> Found:
    import jax.numpy as jnp

    def make(x: Any, y: Any) -> Any:
        one = LogisticRegression().fit(x, y)
        weights, bias = jnp.asarray(one.coef_[0]), jnp.asarray(one.intercept_[0])
        return lambda x: jnp.stack([jnp.zeros(len(x)), jnp.asarray(x) @ weights + bias], axis=1)

    return native(make, lambda model: model(X), logits=True)


@desk("libraries", "Keras")
def _keras() -> Found:
    import os

    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    def make(x: Any, y: Any) -> Any:
        model = keras.Sequential([keras.layers.Input((5,)), keras.layers.Dense(1, activation="sigmoid")])
        model.compile("adam", "binary_crossentropy")
        model.fit(x, y, epochs=2, verbose=0)
        return model

    return native(make, lambda model: model.predict(X, verbose=0))


@desk("libraries", "a stand-in with predict alone")
def _predicts() -> Found:
    class Own:
        def __init__(self, x: Any, y: Any) -> None:
            self.inner = LogisticRegression().fit(x, y)

        def predict(self, x: Any) -> Any:
            return self.inner.predict_proba(x)

    return native(Own, lambda model: model.predict(X))


@desk("libraries", "skorch")
def _skorch() -> Found:
    import torch
    from skorch import NeuralNetClassifier

    network = NeuralNetClassifier(
        lambda: torch.nn.Linear(5, 2),
        criterion=torch.nn.CrossEntropyLoss,
        max_epochs=5,
        lr=0.1,
        train_split=None,
        verbose=0,
    )
    x = X.astype(np.float32)
    model = clone(network).fit(x[IN], Y[IN])
    return Found(
        audit(Population(x, Y), model=model, members=IN, trainer=network, **QUICK),
        cross_entropy(model.predict_proba(x), Y),
        IN,
    )


@desk("libraries", "Hugging Face pipeline's dicts")
def _dicts() -> Found:
    def make(x: Any, y: Any) -> Any:
        one = LogisticRegression().fit(x, y)
        names = ["LABEL_0", "LABEL_1"]
        return lambda x: [
            [{"label": name, "score": p} for name, p in zip(names, row, strict=True)]
            for row in one.predict_proba(x).tolist()
        ]

    return native(make, lambda model: [[one["score"] for one in row] for row in model(X)])


# over a wire


def over_wire(
    reply: Callable[[Any], Any], *, faults: bool = False, most: int = 10**9, drifts: bool = False, **options: Any
) -> Found:
    """The audit of a model behind a real HTTP server that answers with ``reply`` of its probabilities.

    Its truth is the audit that asks for the same answers directly.
    """
    model, calls, random = TREES.fit(X[IN], Y3[IN]), [0], np.random.default_rng(0)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["inputs"]
            calls[0] += 1
            fault = int(random.choice([0, 500, 429], p=[0.8, 0.1, 0.1])) if faults else 0
            status = 413 if len(rows) > most else fault or 200
            body = json.dumps(reply(model.predict_proba(rows)) if status == 200 else "no").encode()
            self.send_response(status)
            if status == 429:
                self.send_header("Retry-After", "0.01")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        remote = RemoteModel(ask=f"http://127.0.0.1:{server.server_address[1]}/", wait=0.01, batch_size=32)
        result = audit(Population(X, Y3), model=remote, members=IN, trainer=TREES, **QUICK, **options)
        server.shutdown()
    direct = result
    if drifts:
        assert any("another answer" in text for text in result.context.warnings)
    else:
        asked = lambda x: _as_array(reply(model.predict_proba(x)))  # noqa: E731
        direct = audit(Population(X, Y3), model=asked, members=IN, trainer=TREES, **QUICK, **options)
    return Found(result, -direct.outcomes["loss"].scores, IN)


def _as_array(answer: Any) -> Any:
    """Numbers as an array, and dicts as they are."""
    return answer if isinstance(answer[0], list) and isinstance(answer[0][0], dict) else np.array(answer)


desk("wire", "500s and 429s")(lambda: over_wire(lambda rows: rows.tolist(), faults=True))
desk("wire", "413 above seven records")(lambda: over_wire(lambda rows: rows.tolist(), most=7))
desk("wire", "rounded to two digits")(lambda: over_wire(lambda rows: rows.round(2).tolist()))
desk("wire", "top-1")(lambda: over_wire(lambda rows: top(rows, 1)))
desk("wire", "top-2 of three")(lambda: over_wire(lambda rows: top(rows, 2)))
desk("wire", "labels, not said to be labels")(lambda: over_wire(lambda rows: rows.argmax(axis=1).tolist()))
desk("wire", "label only")(
    lambda: over_wire(lambda rows: rows.argmax(axis=1).tolist(), attacker=Attacker(query=LabelOnly(votes=4)))
)


def top(rows: Any, k: int) -> Any:
    """Probabilities of the k likeliest classes as dicts, as an API gives them."""
    return [[{"label": f"LABEL_{at}", "score": row[at]} for at in np.argsort(row)[::-1][:k].tolist()] for row in rows]


@desk("wire", "answers that drift")
def _drift() -> Found:
    random = np.random.default_rng(0)
    return over_wire(lambda rows: (0.5 * rows + 0.5 * random.dirichlet([1, 1, 1], len(rows))).tolist(), drifts=True)


# torch


def torch_desk(make: Callable[[], Any], x: Any = None, **options: Any) -> Found:
    """The audit of a module that TorchTrainer trains, beside its own logits."""
    import torch

    x = X.astype(np.float32) if x is None else x
    trainer = TorchTrainer(module=make, epochs=3, device="cpu", **options)
    data = Population(x, Y)
    model = trainer(data, IN, 0)
    result = audit(data, model=model, members=IN, trainer=trainer, **QUICK)
    with torch.no_grad():
        given: Any = (
            {name: torch.as_tensor(values) for name, values in x.items()} if isinstance(x, dict) else torch.as_tensor(x)
        )
        logits = model(**given) if isinstance(x, dict) else model(given)
    if logits.shape[1] == 1:
        return Found(result, cross_entropy(logits.double().numpy(), Y), IN)
    return Found(result, softmax_losses(logits.double().numpy(), Y), IN)


@desk("torch", "CNN with BatchNorm and augmentation")
def _cnn() -> Found:
    from torch import nn

    from glasshouse.training import CropAndFlip

    images = np.random.default_rng(0).normal(size=(N, 1, 8, 8)).astype(np.float32)
    make = lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))  # noqa: E731
    return torch_desk(make, images, augmentation=CropAndFlip(padding=1))


@desk("torch", "LSTM on ragged sequences, as a list")
def _ragged() -> Found:
    from torch import nn

    return torch_desk(lambda: nn.LSTM(1, 4), [np.zeros((3 + number % 4, 1), dtype=np.float32) for number in range(N)])


@desk("torch", "LSTM on ragged sequences, padded with lengths")
def _padded() -> Found:
    import torch
    from torch import nn

    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.LSTM(1, 4, batch_first=True), nn.Linear(4, 2)

        def forward(self, x: Any, lengths: Any) -> Any:
            return self.head(self.cell(x)[0][torch.arange(len(x)), lengths.long() - 1])

    lengths = 3 + np.arange(N) % 4
    x = np.where(np.arange(6)[None, :, None] < lengths[:, None, None], X[:, :1, None], 0).astype(np.float32)
    return torch_desk(Reader, {"x": x, "lengths": lengths})


@desk("torch", "IterableDataset and a DataLoader")
def _stream() -> Found:
    import torch
    from torch.utils.data import DataLoader, IterableDataset

    class Stream(IterableDataset):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            return iter(
                [(torch.as_tensor(row, dtype=torch.float32), int(label)) for row, label in zip(X, Y, strict=True)]
            )

    trainer = TorchTrainer(module=lambda: torch.nn.Linear(5, 2), epochs=3, device="cpu")
    data = Population(DataLoader(Stream(), batch_size=16))
    model = trainer(data, IN, 0)
    result = audit(data, model=model, members=IN, trainer=trainer, **QUICK)
    return Found(result, softmax_losses(model(torch.as_tensor(X, dtype=torch.float32)).detach().numpy(), Y), IN)


@desk("torch", "DataParallel")
def _parallel() -> Found:
    from torch import nn

    return torch_desk(lambda: nn.DataParallel(nn.Linear(5, 2)))


@desk("torch", "compiled")
def _compiled() -> Found:
    import torch

    return torch_desk(lambda: torch.compile(torch.nn.Linear(5, 2), backend="eager"))


@desk("torch", "two inputs")
def _two_inputs() -> Found:
    from torch import nn

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = nn.Linear(2, 2), nn.Linear(3, 2)

        def forward(self, a: Any, b: Any) -> Any:
            return self.one(a) + self.other(b)

    return torch_desk(Both, {"a": X[:, :2].astype(np.float32), "b": X[:, 2:].astype(np.float32)})


@desk("torch", "sigmoid output")
def _sigmoid() -> Found:
    from torch import nn

    return torch_desk(lambda: nn.Sequential(nn.Linear(5, 1), nn.Sigmoid()))


# no trainer


def kept_answers() -> tuple[Any, Any]:
    model = LogisticRegression().fit(X[IN], Y[IN])
    return model, model.predict_proba(X)


@desk("no trainer", "predictions alone")
def _predictions() -> Found:
    _, chance = kept_answers()
    result = audit(Population(X, Y), model=lambda x: chance, members=IN, shadows=0, attacks=["loss"], progress=False)
    return Found(result, cross_entropy(chance, Y), IN)


@desk("no trainer", "no shadow models")
def _alone() -> Found:
    model, chance = kept_answers()
    result = audit(Population(X, Y), model=model, members=IN, shadows=0, progress=False, attacks=["loss"])
    return Found(result, cross_entropy(chance, Y), IN)


for _kind in ("npz", "csv", "parquet"):

    @desk("no trainer", f"saved probabilities in {_kind}, ids in another order")
    def _saved(kind: str = _kind) -> Found:
        _, chance = kept_answers()
        ids, order = np.array([f"r{number}" for number in range(N)]), RANDOM.permutation(N)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"kept.{kind}"
            if kind == "npz":
                np.savez(
                    path,
                    ids=ids[order],
                    labels=Y[order],
                    target_probabilities=chance[order],
                    shadow_probabilities=np.stack([chance[order]] * 2),
                    shadow_members=np.stack([IN[order], ~IN[order]]),
                )
            else:
                frames = [
                    pd.DataFrame(
                        {
                            "model": name,
                            "id": ids[at],
                            "label": Y[at],
                            "probability_0": chance[at, 0],
                            "probability_1": chance[at, 1],
                            "member": who[at].astype(int),
                        }
                    )
                    for name, at, who in (("target", order, IN), ("a", np.arange(N), IN), ("b", order[::-1], ~IN))
                ]
                table = pd.concat(frames)
                _ = table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path)
            evidence: Any = read_evidence(path)
        evidence = evidence[0] if isinstance(evidence, tuple) else evidence
        at = np.array([int(name[1:]) for name in evidence.ids])
        result = audit_evidence(evidence, members=IN[at], attacks=["loss"], progress=False)
        return Found(result, cross_entropy(chance, Y)[at], IN[at])


@desk("no trainer", "members unknown")
def _unknown() -> Found:
    model, _ = kept_answers()
    return Found(audit(Population(X, Y), model=model, trainer=LogisticRegression(), **QUICK), np.zeros(N), IN)
