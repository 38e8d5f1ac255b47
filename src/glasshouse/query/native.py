"""Models as their libraries give them: boosters, sessions, pipelines, results of a fit, margins without probabilities.

One short function per kind, found by where a model's class comes from, so that no library is imported before a model of
it is there. Each asks for scores of all classes, logits where the library has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.arrays import FloatArray, IntArray, as_array
from glasshouse.core.errors import InputError
from glasshouse.data import Population

Ask = Callable[[Any], Any]
_UNSEEN = 30.0  # a class that a model never saw is this much less likely, in logits, than its least likely one
_LISTED = ("label", "score")  # what the dicts of a pipeline hold

_MARGINS = "The model gives no probabilities; its decision function is used as logits."


def native_asker(model: Any, population: Population, *, margins: bool = True) -> Ask | None:
    """How a model of a known library is asked about a batch; None for all others.

    An estimator without probabilities is asked for its ``margins`` only where scores are wanted.
    """
    places = [f"{cls.__module__}.{cls.__qualname__}" for cls in type(model).__mro__]
    for start, end, make in _KINDS:
        if any(place.startswith(start + ".") and place.rsplit(".", 1)[1].endswith(end) for place in places):
            return make(model, population)
    if hasattr(model, "predict_proba"):
        return None
    if margins and hasattr(model, "decision_function") and hasattr(model, "classes_"):
        return _decision(model, population)
    if hasattr(model, "predict") and not callable(model) and not hasattr(model, "fit"):
        return lambda x: model.predict(x)  # what Keras and its like call the answer
    return None


def margin_notes(model: Any) -> tuple[str, ...]:
    """What a report says about a model that is asked for margins; nothing about others."""
    margins = hasattr(model, "decision_function") and not hasattr(model, "predict_proba")
    return (_MARGINS,) if margins else ()


def _two(scores: Any, population: Population) -> Any:
    """Logits [N] of the second of two classes as those of both; anything else as it is."""
    values = as_array(scores)
    if population.regression or len(population.classes) != 2 or values.size != len(values):
        return values
    flat = values.reshape(-1)
    return np.stack([np.zeros_like(flat), flat], axis=1)


def _xgboost(model: Any, population: Population) -> Ask:
    import xgboost

    margin = not population.regression and not population.own_loss

    def ask(x: Any) -> Any:
        named = None if hasattr(x, "columns") else model.feature_names
        table = xgboost.DMatrix(x, feature_names=named, enable_categorical=hasattr(x, "columns"))
        return _two(model.predict(table, output_margin=margin), population)

    return ask


def _lightgbm(model: Any, population: Population) -> Ask:
    raw = not population.regression and not population.own_loss
    return lambda x: _two(model.predict(x, raw_score=raw), population)


def _catboost(model: Any, population: Population) -> Ask | None:
    if hasattr(model, "predict_proba") or population.regression or population.own_loss:
        return None if hasattr(model, "predict_proba") else model.predict
    return lambda x: _two(model.predict(x, prediction_type="RawFormulaVal"), population)


def _statsmodels(model: Any, population: Population) -> Ask:
    names = [str(name) for name in getattr(model.model, "exog_names", None) or ()]
    formula = hasattr(model.model, "formula")

    def ask(x: Any) -> Any:
        features = as_array(x) if not hasattr(x, "columns") else x
        if not formula and names[:1] == ["const"] and np.shape(features)[1] == len(names) - 1:
            from statsmodels.tools import add_constant

            features = add_constant(features, has_constant="add")
        chance = np.asarray(model.predict(features))
        alone = chance.ndim == 1 and not population.regression and len(population.classes) == 2
        return np.stack([1 - chance, chance], axis=1) if alone else chance

    return ask


_TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16, "int64": np.int64, "int32": np.int32}


def _onnx(model: Any, population: Population) -> Ask:
    (wanted, *more) = model.get_inputs()
    if more:
        names = ", ".join(repr(one.name) for one in (wanted, *more))
        raise InputError(
            f"model: the session has the inputs {names}. Give a function x -> session.run(None, {{…}})[0]."
        )
    kind = _TYPES.get(wanted.type.removeprefix("tensor(").rstrip(")"))

    def ask(x: Any) -> Any:
        values = as_array(x)
        outputs = model.run(None, {wanted.name: values if kind is None else values.astype(kind)})
        for one in outputs:  # a classifier gives labels first, then probabilities: an array, or dicts by label
            if isinstance(one, list) and one and isinstance(one[0], Mapping):
                return rows_of_dicts([[{"label": k, "score": v} for k, v in row.items()] for row in one], population)
            if isinstance(one, np.ndarray) and one.dtype.kind == "f":
                return one
        return outputs[0]

    return ask


def _pipeline(model: Any, population: Population) -> Ask:
    def ask(x: Any) -> Any:
        texts = [str(text) for text in np.asarray(x).reshape(-1)]
        return rows_of_dicts(model(texts, top_k=None), population)

    return ask


def _keras(model: Any, population: Population) -> Ask:
    last = getattr((getattr(model, "layers", None) or [None])[-1], "activation", None)
    sigmoid = getattr(last, "__name__", "") == "sigmoid" and len(population.classes) == 2

    def ask(x: Any) -> Any:
        answer = np.asarray(model.predict(x, verbose=0))
        return np.concatenate([1 - answer, answer], axis=1) if sigmoid and answer.shape[1:] == (1,) else answer

    return ask


_KINDS: tuple[tuple[str, str, Callable[[Any, Population], Ask | None]], ...] = (
    ("xgboost", "Booster", _xgboost),
    ("lightgbm", "Booster", _lightgbm),
    ("catboost", "CatBoost", _catboost),
    ("statsmodels", "Wrapper", _statsmodels),
    ("onnxruntime", "InferenceSession", _onnx),
    ("transformers", "Pipeline", _pipeline),
    ("keras", "Model", _keras),
)


def _decision(model: Any, population: Population) -> Ask:
    """Margins as logits, in the columns of the population's classes."""
    columns = class_columns(model, population)

    def ask(x: Any) -> FloatArray:
        scores = np.asarray(model.decision_function(x), dtype=np.float64)
        if scores.ndim == 1:
            scores = np.stack([np.zeros_like(scores), scores], axis=1)
        if scores.shape[1] != len(columns):
            raise InputError(
                f"model: its decision function has {scores.shape[1]} columns for {len(columns)} classes. Say "
                f'decision_function_shape="ovr", or wrap it in sklearn.calibration.CalibratedClassifierCV.'
            )
        everyone = np.repeat(scores.min(axis=1, keepdims=True) - _UNSEEN, len(population.classes), axis=1)
        everyone[:, columns] = scores
        return everyone

    return ask


def class_columns(model: Any, population: Population) -> IntArray:
    """The population's column of each class of the estimator; a class that it never saw has probability 0."""
    if not hasattr(model, "classes_"):  # its columns can only be the population's classes, in their order
        return np.arange(len(population.classes))
    known = np.asarray(model.classes_)
    outside = ~np.isin(known, population.classes)
    if outside.any():
        raise InputError(
            f"model: it knows the class {known[outside].tolist()[0]!r}, which is not among the population's classes "
            f"{population.classes.tolist()}. Give the population all classes, Population(x, y, classes=...), or the "
            f"labels that the model was fitted to."
        )
    return np.searchsorted(population.classes, known).astype(np.int64)


def are_dicts(answer: Any) -> bool:
    """Whether these are the dicts of a Hugging Face pipeline: {"label": …, "score": …}, one or several per record."""
    if not isinstance(answer, list | np.ndarray) or not len(answer):
        return False
    first = answer[0]
    first = first[0] if isinstance(first, list) and first else first
    return isinstance(first, Mapping) and all(name in first for name in _LISTED)


def in_class_order(answer: Any, population: Population) -> Any:
    """The answer; of a data frame whose columns have the names of the classes, [B, C] in their order."""
    names, classes = ([str(one) for one in listed] for listed in (getattr(answer, "columns", ()), population.classes))
    if not names or sorted(names) != sorted(classes):
        return answer
    return np.asarray(answer)[:, [names.index(one) for one in classes]]


def rows_of_dicts(answer: Sequence[Any], population: Population) -> NDArray[np.float64]:
    """Probabilities [B, C] from lists of {"label", "score"}; a class that is not listed has 0."""
    names = {str(one): column for column, one in enumerate(population.classes.tolist())}
    numbered = {f"LABEL_{column}": column for column in range(len(names))}
    rows = np.zeros((len(answer), len(names)))
    for row, listed in enumerate(answer):
        for one in [listed] if isinstance(listed, Mapping) else listed:
            label = str(one["label"])
            column = names.get(label, numbered.get(label))
            if column is None:
                raise InputError(
                    f"model: it answers about {label!r}, which is no class of the population: {list(names)[:8]}. Give "
                    f"the population these labels, or the model's config an id2label with them."
                )
            rows[row, column] = float(one["score"])
    return rows
