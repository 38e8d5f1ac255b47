"""What a model returns, in one form: unwrapped, checked, recognised as logits or as probabilities, and as losses.

A loss is the softplus of the negative margin, which keeps the digits of a confident answer: a confidence of 1 - 1e-40
gives 1e-40, and not 0. The kernels in ``graph/rule/two_layers/rows.py`` compute the same in float32.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from glasshouse.core.arrays import FloatArray, IntArray, as_array
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import margin_to_loss
from glasshouse.core.optional import is_made_by, is_module, is_tensor

if TYPE_CHECKING:
    from torch import Tensor

SHARES_NOTE = (
    "The model answers with numbers between 0 and 1 that do not sum to 1; they are used as logits. If they are "
    "probabilities, answer with those of all classes, since an audit of some of them is not exact."
)
_TOLERANCE = 1e-3  # of a row's sum: float32 over a thousand classes stays below 1e-4
_SWAPPED = 0.2  # of all records: an untrained model may be below chance, but rarely by so much
_ENOUGH = 50  # records that show such an order
_FEW = 8  # rows that show that all sum to the same number
_ROUNDED = 2.0  # percent: whole percentages do not quite sum to 100
_SHOWN = 10  # classes that a sentence names
_SAME = 0.01  # low precision and other batch sizes change answers by less
_HALF_TOLERANCE = 2e-2  # of a row's sum in float16 or bfloat16
_NAMES = ("logits", "probabilities", "probs", "prediction_logits")  # names that models use for their answer


def unwrapped(answer: Any) -> Any:
    """The tensor or array in what a model returned: a dict, a tuple, a ``ModelOutput``, or the answer itself.

    An object or a mapping with ``logits`` gives these, a tuple its first array that has an entry per record, which
    holds the logits in torchvision and many other libraries. What else numpy reads stays as it is.
    """
    if _is_array(answer):
        return answer
    if isinstance(answer, Mapping):
        for name in _NAMES:
            if answer.get(name) is not None:
                return answer[name]
        arrays = _arrays(answer.values())
        if len(arrays) == 1:
            return arrays[0]
        keys = ", ".join(map(repr, answer)) or "nothing"
        raise InputError(f"model: it answered with a mapping of {keys}; expected a key 'logits'.")
    for name in _NAMES:
        if (found := getattr(answer, name, None)) is not None:
            return found
    if isinstance(answer, tuple) and (arrays := _arrays(answer)):
        return arrays[0]
    if isinstance(answer, tuple | list) and len(answer):
        first = answer[0]
        # a list of rows can become an array; a list whose first entry is a whole batch cannot
        if _is_array(first) and first.ndim > 1:
            return first
        if isinstance(first, Mapping):
            return unwrapped(first)
    return answer


def check_order_of_outputs(answer: Any, classes: int, *, place: str = "model") -> None:
    """Refuse several arrays of which not the first has a column per class but another: `unwrapped` takes the first."""
    if not isinstance(answer, tuple | list) or any(getattr(answer, name, None) is not None for name in _NAMES):
        return
    shapes = [tuple(one.shape) for one in _arrays(answer)]
    first = shapes[0] if shapes else ()
    if len(first) != 2 or first[1] == classes:
        return
    expected = {(first[0], classes)} | ({(first[0], 1), (first[0],)} if classes == 2 and first[1] > 1 else set())
    if expected & set(shapes[1:]):
        shown = " and ".join(str(list(shape)) for shape in shapes[:_SHOWN])
        raise InputError(
            f"{place}: it answers with arrays of shapes {shown}, and there are {classes} classes. The first is read: "
            f"return the logits first, or as a dict with 'logits'."
        )


def of_tokens(shape: tuple[int, ...]) -> str:
    """What to do about a model that answers about every token, [B, T, V]; empty for an answer of another shape."""
    if len(shape) != 3:
        return ""
    return (
        " If it is a language model, which answers about every token, train it with CausalLMTrainer and audit "
        "tokenized(texts, tokenizer) with audit(…, loss=TokenLoss())."
    )


def looks_like_probabilities(rows: Tensor | NDArray[Any]) -> bool:
    """Whether all rows [N, C], C >= 2, are not negative and sum to 1; logits do not."""
    if rows.ndim != 2 or rows.shape[1] < 2:
        return False
    tolerance = _HALF_TOLERANCE if str(rows.dtype).removeprefix("torch.") in ("float16", "bfloat16") else _TOLERANCE
    values = _double(rows)
    return bool(len(values) and (values >= 0).all() and (np.abs(values.sum(axis=1) - 1) < tolerance).all())


def looks_like_probability_column(column: Tensor | NDArray[Any], labels: IntArray) -> bool:
    """Whether a binary model's single answers [N] are probabilities of class 1 and not logits; labels [N] are 0 or 1.

    All lie between 0 and 1, and a threshold at 0.5 is right more often than one at 0. If both are right equally often,
    the smaller squared error decides: weak logits of a model that always answers class 1 lie there too.
    """
    values = _double(column).reshape(-1)
    if not len(values) or (values < 0).any() or (values > 1).any():
        return False
    right = ((values > 0.5) == labels).mean()
    right_as_logits = (labels == 1).mean()
    if right != right_as_logits:
        return bool(right > right_as_logits)
    sure = 1 / (1 + np.exp(-values))
    return bool(((values - labels) ** 2).mean() < ((sure - labels) ** 2).mean())


def array_of(answer: Any) -> NDArray[Any]:
    """An answer as an array on the CPU, in its own precision (`as_array`); what is no number is refused."""
    array = as_array(answer)
    if array.dtype.kind not in "fiub":
        raise InputError(
            f"model: it answered with {array.dtype} instead of numbers; expected logits, [N, C]. If these are labels, "
            f"ask for labels alone, which shows less: audit(…, attacker=Attacker(query=LabelOnly()))."
        )
    return array


def check_probabilities(rows: NDArray[Any], place: str) -> None:
    """Refuse rows [B, C] that are not distributions over the classes."""
    values = np.asarray(rows, dtype=np.float64)
    sums = values.sum(axis=1)
    wrong = (np.abs(sums - 1) > _TOLERANCE) | (values < -1e-6).any(axis=1)
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        low = values[first].min()
        said = f"holds {low:.3g}" if low < 0 else f"sums to {sums[first]:.3g}"
        raise InputError(
            f"{place} gave a row that {said}; probabilities are not negative and sum to 1. Check its wrapper, or "
            f"calibrate it (sklearn.calibration.CalibratedClassifierCV)."
        )


def check_not_counts(rows: NDArray[Any]) -> None:
    """Refuse percentages and votes [B, C]: unlike logits, their rows all sum to one number, which is not near 0."""
    sums = rows.sum(axis=1, dtype=np.float64)
    whole = float(np.median(sums)) if len(sums) else 0.0
    if len(rows) < _FEW or not whole > 1.5 or (rows < 0).any():
        return
    away = float(np.abs(sums - whole).max())
    if away > _TOLERANCE * whole and (round(whole) != 100 or away > _ROUNDED):
        return
    raise InputError(
        f"model: its answers about each record are not negative and sum to {whole:.4g}, as percentages or votes do. "
        f"Divide them by {whole:.4g}, so that they are probabilities."
    )


def ends_in_sigmoid(model: Any) -> bool:
    """Whether the last layer of a torch module is a sigmoid."""
    if not is_module(model):
        return False
    layers = [module for module in model.modules() if not any(True for _ in module.children())]
    return is_made_by(layers[-1], "torch.nn", "Sigmoid")


def differing(first: NDArray[Any], again: NDArray[Any]) -> NDArray[np.bool_]:
    """[B] whether two answers about the same records differ by more than low precision explains."""
    if first.dtype.kind != "f" or first.shape != again.shape:
        return np.array([one != other for one, other in zip(first.tolist(), again.tolist(), strict=True)])
    same = np.isclose(first, again, rtol=_SAME, atol=_SAME, equal_nan=True)
    return np.asarray(~same.reshape(len(first), -1).all(axis=1))


def column_order_note(chosen: IntArray, labels: IntArray, classes: NDArray[Any]) -> tuple[str, ...]:
    """A sentence for the report if a model's columns seem to be in another order than the population's classes [C].

    Its choices [N] are compared with the labels [N] under the best order of its columns.
    """
    right = float((chosen == labels).mean())
    if right >= 1 / len(classes) or len(labels) < _ENOUGH:
        return ()
    counts = np.zeros((len(classes), len(classes)))
    np.add.at(counts, (labels, chosen), 1)
    best = float(counts[linear_sum_assignment(counts, maximize=True)].sum()) / len(labels)
    if best - right < _SWAPPED:
        return ()
    shown = ", ".join(map(str, classes[:_SHOWN].tolist())) + (", …" if len(classes) > _SHOWN else "")
    return (
        f"The model answers right for {right:.0%} of records, and for {best:.0%} if its columns are put into another "
        f"order. Columns must be in the order of the population's classes ({shown}).".replace("%", " %"),
    )


def _is_array(thing: Any) -> bool:
    return isinstance(thing, np.ndarray) or is_tensor(thing)


def _arrays(values: Iterable[Any]) -> list[Any]:
    """Arrays with an entry per record; a loss is a single number."""
    return [value for value in values if _is_array(value) and value.ndim]


def _double(values: Tensor | NDArray[Any]) -> FloatArray:
    return np.asarray(array_of(values), dtype=np.float64)


def losses_from_logits(logits: ArrayLike, labels: IntArray, *, temperature: float = 1.0) -> FloatArray:
    """Cross-entropy of each record, float64 [N], of logits [N, C], C >= 2, and the columns [N] of the true classes."""
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    rows = np.arange(len(scaled))
    own = scaled[rows, labels]
    scaled[rows, labels] = -np.inf
    largest = scaled.max(axis=1)
    others = largest + np.log(np.exp(scaled - largest[:, None]).sum(axis=1))
    return margin_to_loss(own - others)


def tensor_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """The same on the tensors' own device, float64 [...], from logits [..., C] and labels [...]."""
    import torch

    # the classes come first: sums over a last dimension of a few entries would leave most of a core idle
    others = logits.movedim(-1, 0).to(torch.float64, memory_format=torch.contiguous_format, copy=True)
    own_row = labels.expand(logits.shape[:-1]).unsqueeze(0)
    own = others.gather(0, own_row)[0]
    others.scatter_(0, own_row, -torch.inf)
    top = others.amax(0)
    top.masked_fill_(top.isinf(), 0.0)  # as logsumexp does: infinity less infinity is no number
    margin = others.sub_(top).exp_().sum(0).log_().add_(top).sub_(own)
    # threshold: above it softplus(x) is taken as x; 40 keeps float64 exact, torch's default of 20 does not
    return torch.nn.functional.softplus(margin, threshold=40.0)
