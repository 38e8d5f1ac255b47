"""Ask a model of any kind about a batch of records: a torch module, an estimator, a callable, one of another library.

Of models of other libraries, boosters, sessions, pipelines and results of a fit, there is one short function per kind,
found by where a model's class comes from, so that no library is imported before a model of it is there. Each asks for
scores of all classes, logits where the library has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray, as_array
from glasshouse.core.errors import InputError, first_line
from glasshouse.core.optional import is_module
from glasshouse.data import Population, Records
from glasshouse.training.sklearn import check_task, habits_of, parts_of, single_precision

if TYPE_CHECKING:
    from torch import nn

LABELS_ADVICE = (
    "If labels are all that it gives, ask for labels alone, which shows less: "
    "audit(…, attacker=Attacker(query=LabelOnly()))."
)


What = Literal["logits", "predictions", "labels"]


@dataclass(frozen=True, eq=False)
class KeptAnswers:
    """Takes the place of a model of which a pool kept only the answers.

    Args:
        population_logits: [N, C] float64, in the order of the population's records and classes; for a regression its
            predictions, [N, 1] or [N, 2].
        correct: [N] whether each record itself got its label, if labels alone were asked for; None otherwise.
    """

    population_logits: FloatArray
    correct: BoolArray | None = None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """By name, as a file holds them."""
        return {"logits": self.population_logits} | ({} if self.correct is None else {"correct": self.correct})

    def check_question(self, *, labels_only: bool) -> None:
        """Refuse these answers for another question than they were given to."""
        if labels_only != (self.correct is not None):
            kept, asked = ("probabilities", "labels alone") if labels_only else ("labels alone", "probabilities")
            raise InputError(
                f"pool: of this model only its answers were kept, when {kept} were asked for, and now {asked} are. "
                f"Give the pool the same question, ShadowPool(…, how=…), and its models are trained again for it."
            )


def asker(
    model: Any, population: Population, *, device: str | None = None, what: What = "logits"
) -> Callable[[Any], Any]:
    """A function that queries a model of this kind about a batch of records; what fails in the model is refused.

    For logits it is asked for scores of all classes, for predictions or labels for what its ``predict`` gives.
    """
    ask = _plain_asker(model, population, device, what)

    def careful(x: Any) -> Any:
        try:
            answer = ask(x)
            return rows_of_dicts(answer, population) if are_dicts(answer) else in_class_order(answer, population)
        except InputError:
            raise
        except Exception as error:
            advice = "Fit it on the members" if re.search(r"\bfit|train", str(error)) else "Try it on population.x"
            if "unknown categories" in str(error):
                advice = 'Say OneHotEncoder(handle_unknown="ignore"): other records have values that no member has'
            raise InputError(
                f"model: {type(model).__name__} could not answer about the population's records: "
                f"{first_line(error).rstrip('.')}. {advice}."
            ) from error

    return careful


def _plain_asker(model: Any, population: Population, device: str | None, what: What) -> Callable[[Any], Any]:
    scores, name = what == "logits", type(model).__name__
    method = "predict_proba" if scores else "predict"
    if isinstance(model, type):
        raise InputError(f"model: is the class {model.__name__}; give a model that was trained on the members.")
    if scores and isinstance(population.x, Records) and callable(model) and not hasattr(model, method):
        return population.x.asker(model, device=device)
    if (native := native_asker(model, population, margins=scores)) is not None:
        return native  # a model of Keras may be a torch module too
    if is_module(model):
        return module_asker(model, population, device=device)
    if hasattr(model, method):
        if not scores:
            check_task(model, population, place="model")
        single = any(habits_of(part).single for _, part in parts_of(model))

        def ask(x: Any) -> Any:
            return getattr(model, method)(single_precision(x) if single else x)

        return _of_all_classes(model, ask, population) if scores else ask
    if callable(model):
        return model  # type: ignore[no-any-return]
    if scores and hasattr(model, "fit"):
        raise InputError(
            f"model: {name} has no predict_proba or decision_function: it is not fitted yet, or it gives no "
            f'probabilities. Fit it on the members; probabilities come from voting="soft", probability=True or '
            f"sklearn.calibration.CalibratedClassifierCV. {LABELS_ADVICE}"
        )
    example = ", such as lambda x: model.score_all_classes(x)" if scores else ""
    raise InputError(
        f"model: {name} cannot be queried. Give a torch module, an estimator with {method}, or a callable x -> {what}"
        f"{example}."
    )


def _of_all_classes(model: Any, ask: Callable[[Any], Any], population: Population) -> Callable[[Any], FloatArray]:
    """The probabilities of an estimator in the columns of the population's classes."""

    def asked(x: Any) -> FloatArray:
        known, columns = np.asarray(ask(x)), class_columns(model, population)  # one that is not fitted has said so now
        if known.shape != (len(known), len(columns)):
            raise InputError(
                f"model: predict_proba gave shape {known.shape} for {len(columns)} classes; expected one column "
                f"per class in classes_."
            )
        everyone = np.zeros((len(known), len(population.classes)), dtype=known.dtype)
        everyone[:, columns] = known
        return everyone

    return asked


def module_asker(model: nn.Module, population: Population, *, device: str | None = None) -> Callable[[Any], Any]:
    """A function that queries a torch module about a batch of records, in evaluation mode and without gradients."""
    import torch

    from glasshouse.training.batches import failure_line
    from glasshouse.training.inputs import called, first_tensor, in_evaluation, moved, reader_for

    weights = next(model.parameters(), None)
    place = torch.device(device or (weights.device if weights is not None else "cpu"))
    if weights is not None and weights.device.type == "meta":
        raise InputError("model: its weights are on the device 'meta', which holds no numbers; load them first.")
    model = model.to(place)
    read = reader_for(model, population.x)

    def ask(x: Any) -> Any:
        inputs = moved(read(x), place)
        try:
            with torch.inference_mode(), in_evaluation([model]):
                return called(model, inputs)
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            if isinstance(error, torch.OutOfMemoryError):
                raise
            raise InputError(f"model: it failed on {failure_line(first_tensor(inputs), error)}") from error

    return ask


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
