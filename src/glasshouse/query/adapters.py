"""Ask a model of any kind about a batch of records: a torch module, an estimator or a callable."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError, first_line
from glasshouse.core.optional import is_module
from glasshouse.data import Population, Records
from glasshouse.query.native import are_dicts, class_columns, in_class_order, native_asker, rows_of_dicts
from glasshouse.training.sklearn import check_task, habits_of, parts_of, single_precision

if TYPE_CHECKING:
    from torch import nn

LABELS_ADVICE = (
    "If labels are all that it gives, ask for labels alone, which shows less: "
    "audit(…, attacker=Attacker(query=LabelOnly()))."
)


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


def asker(model: Any, population: Population, *, device: str | None = None) -> Callable[[Any], Any]:
    """A function that queries a model of this kind about a batch of records; what fails in the model is refused."""
    ask = _plain_asker(model, population, device)

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


def _plain_asker(model: Any, population: Population, device: str | None) -> Callable[[Any], Any]:
    if isinstance(model, type):
        raise InputError(f"model: is the class {model.__name__}; give a model that was trained on the members.")
    if isinstance(population.x, Records) and callable(model) and not hasattr(model, "predict_proba"):
        return population.x.asker(model, device=device)
    if (native := native_asker(model, population)) is not None:  # a model of Keras may be a torch module too
        return native
    if is_module(model):
        return module_asker(model, population, device=device)
    if hasattr(model, "predict_proba"):
        columns: IntArray | None = None
        single = any(habits_of(part).single for _, part in parts_of(model))

        def ask_estimator(x: Any) -> FloatArray:
            nonlocal columns
            known = np.asarray(model.predict_proba(single_precision(x) if single else x))
            if columns is None:  # an estimator that is not fitted has said so by now
                columns = class_columns(model, population)
            if known.shape != (len(known), len(columns)):
                raise InputError(
                    f"model: predict_proba gave shape {known.shape} for {len(columns)} classes; expected one column "
                    f"per class in classes_."
                )
            everyone = np.zeros((len(known), len(population.classes)), dtype=known.dtype)
            everyone[:, columns] = known
            return everyone

        return ask_estimator
    if callable(model):
        return model  # type: ignore[no-any-return]
    name = type(model).__name__
    if hasattr(model, "fit"):
        raise InputError(
            f"model: {name} has no predict_proba or decision_function: it is not fitted yet, or it gives no "
            f'probabilities. Fit it on the members; probabilities come from voting="soft", probability=True or '
            f"sklearn.calibration.CalibratedClassifierCV. {LABELS_ADVICE}"
        )
    raise InputError(
        f"model: {name} cannot be queried. Give a torch module, an estimator with predict_proba, or a callable "
        f"x -> logits, such as lambda x: model.score_all_classes(x)."
    )


def value_asker(model: Any, population: Population, *, device: str | None, what: str) -> Callable[[Any], Any]:
    """A function that queries a model for what its ``predict`` gives, ``"predictions"`` or ``"labels"``."""
    if is_module(model):
        return module_asker(model, population, device=device)
    if (native := native_asker(model, population, margins=False)) is not None:
        return native
    if hasattr(model, "predict"):
        check_task(model, population, place="model")
        single = any(habits_of(part).single for _, part in parts_of(model))
        return (lambda x: model.predict(single_precision(x))) if single else model.predict
    if callable(model):
        return model  # type: ignore[no-any-return]
    raise InputError(
        f"model: {type(model).__name__} cannot be queried. Give a torch module, an estimator with predict, or a "
        f"callable x -> {what}."
    )


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
