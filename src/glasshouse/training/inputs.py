"""Features as a torch module takes them: one tensor, or a dict of tensors for the arguments of ``forward``."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from glasshouse.core.errors import InputError
from glasshouse.core.outputs import unwrapped
from glasshouse.data import count_records, is_frame, select, table_of_numbers

Inputs = Tensor | dict[str, Tensor]

_LOOK = 8  # records that show whether a module takes whole numbers


def reader_for(model: nn.Module, x: Any) -> Callable[[Any], Inputs]:
    """A function from rows of these features to what this module takes, decided once, from a few records.

    Floats get the precision of the module's weights, if it has any. Whole numbers stay whole numbers if the module
    takes them, as an embedding does, and become floats if it does not, as a linear layer. A dict of arrays becomes a
    dict of tensors; nothing but the precision of its floats is changed, and the module is called with its keys. The
    model is on its device, and ``x`` are the features of all records, as a `Population` holds them.
    """
    floats = next((weights.dtype for weights in model.parameters() if weights.is_floating_point()), None)
    device = place_of(model)

    def as_given(rows: Any) -> Inputs:
        if isinstance(rows, Mapping):
            return {name: tensor_of(values, floats=floats, name=name) for name, values in rows.items()}
        found = tensor_of(rows, floats=floats)
        return found.long() if found.dtype == torch.bool else found  # a module with one input takes no truth values

    def as_floats(rows: Any) -> Inputs:
        return tensor_of(rows).to(floats or torch.float32)

    few = select(x, _telling_rows(x))
    given = as_given(few)
    if isinstance(given, Tensor) and given.is_floating_point():
        return as_given
    if (error := _failure(model, moved(given, device))) is None:
        return as_given
    if isinstance(given, dict):
        raise InputError(
            f"module: it cannot be called with {', '.join(given)}: {error}. The keys of a dict are the names of the "
            f"arguments of forward; leave_out=[…] leaves one out. A module of one dict is wrapped in one whose "
            f"forward(self, **batch) gives it batch."
        )
    if (also := _failure(model, moved(as_floats(few), device))) is None:
        return as_floats
    raise InputError(f"module: it takes the features neither as whole numbers ({error}) nor as floats ({also}).")


def refuse_missing(model: nn.Module, inputs: Inputs, *, names: Any = None) -> None:
    """Refuse records with NaN, if the module's answer about them is NaN: its weights would be NaN after a step.

    ``names`` are those of the columns, if features [N, F] have names.
    """
    for key, values in inputs.items() if isinstance(inputs, dict) else [(None, inputs)]:
        if not values.is_floating_point() or not bool(torch.isnan(values.sum())):
            continue
        missing = torch.isnan(values.reshape(len(values), -1))
        rows = missing.any(dim=1)
        if not bool(rows.any()):  # infinite values of both signs
            continue
        answer = unwrapped(answered(model, moved(rows_of(inputs, rows.nonzero()[:2, 0]), place_of(model))))
        if isinstance(answer, Tensor) and bool(torch.isnan(answer).any()):
            column = int(missing.any(dim=0).nonzero()[0, 0])
            place = key or (names[column] if names is not None else f"feature {column}")
            raise InputError(
                f"population: {place}: the value is NaN in {int(rows.sum())} of {len(rows)} training records, and the "
                f"module answers NaN. Fill it in, or leave such records out."
            )


def tensor_of(x: Any, *, floats: torch.dtype | None = None, name: str | None = None) -> Tensor:
    """Features as a tensor: arrays, tensors, sparse matrices and numeric data frames; ``name`` is that of a column.

    Floats become ``floats``; without it those of a tensor stay as they are, and all others become float32. Whole
    numbers become int64, and truth values stay.
    """
    if not isinstance(x, Tensor):
        array = _array(x, name)
        kinds = {"f": np.float64 if floats == torch.float64 else np.float32, "b": np.bool_}
        array = array.astype(kinds.get(array.dtype.kind, np.int64), copy=False)
        # a copy if numpy's memory is read-only or strided: torch would warn or refuse
        x = torch.from_numpy(np.require(array, requirements=["C", "W"]))
    found: Tensor = x
    if found.is_floating_point():
        return found.to(floats or found.dtype)
    return found if found.dtype == torch.bool else found.long()


def called(model: Callable[..., Any], inputs: Inputs) -> Any:
    """What a module answers: a dict gives its tensors by name."""
    return model(**inputs) if isinstance(inputs, dict) else model(inputs)


def rows_of(inputs: Inputs, rows: Tensor | slice) -> Inputs:
    """Some records of the inputs."""
    return {name: values[rows] for name, values in inputs.items()} if isinstance(inputs, dict) else inputs[rows]


def moved(inputs: Inputs, device: torch.device | str) -> Inputs:
    """The inputs on a device."""
    return {name: one.to(device) for name, one in inputs.items()} if isinstance(inputs, dict) else inputs.to(device)


def first_tensor(inputs: Inputs) -> Tensor:
    """The inputs, or the first of several."""
    return next(iter(inputs.values())) if isinstance(inputs, dict) else inputs


def place_of(model: nn.Module) -> torch.device:
    """The device of a module's weights."""
    return next((weights.device for weights in model.parameters()), torch.device("cpu"))


def _telling_rows(x: Any) -> np.ndarray:
    """A few records, and those with the smallest and largest whole numbers, which an embedding may not have."""
    count = count_records(x)
    rows = [np.arange(min(_LOOK, count))]
    for values in x.values() if isinstance(x, Mapping) else [x]:
        if isinstance(values, np.ndarray | Tensor) and "int" in str(values.dtype) and math.prod(values.shape) > 0:
            ends = np.array([int(values.argmin()), int(values.argmax())])
            rows.append(ends // math.prod(values.shape[1:]))
    return np.unique(np.concatenate(rows))


def _array(x: Any, name: str | None = None) -> np.ndarray:
    place = "population" if name is None else f"population: {name}"
    if hasattr(x, "toarray"):
        x = x.toarray()
    if is_frame(x):
        texts = [column for column in x.columns if _is_text(x[column])]
        if texts:
            raise InputError(
                f"{place}: torch models need numbers, but the column {texts[0]!r} holds {x[texts[0]].dtype}. Encode it "
                f"first, as pandas.get_dummies does, leave it out, or train a pipeline with SklearnTrainer."
            )
        return table_of_numbers(x, x.columns)
    array = np.asarray(x)
    if array.dtype.kind not in "fiub":
        what = "texts" if array.dtype.kind in "OU" and array.ndim == 1 else f"of type {array.dtype}"
        advice = " Give token numbers: Population(dict(tokenizer(texts, padding=True)), y)." if what == "texts" else ""
        raise InputError(f"{place}: torch models need numbers, but the features are {what}.{advice}")
    return array


def _is_text(column: Any) -> bool:
    try:
        return table_of_numbers({"column": column}, ["column"]).dtype.kind not in "fiub"
    except (TypeError, ValueError):
        return True


def answered(model: nn.Module, inputs: Inputs, call: Callable[[nn.Module], Any] | None = None) -> Any:
    """What a module answers in evaluation; it and the random numbers are left as they were."""
    device = first_tensor(inputs).device
    with torch.random.fork_rng([device] if device.type == "cuda" else []), torch.no_grad(), in_evaluation([model]):
        return called(model, inputs) if call is None else call(model)


@contextlib.contextmanager
def in_evaluation(models: Iterable[nn.Module]) -> Iterator[None]:
    """No dropout, and no new statistics of BatchNorm; then each part is in training again that was before."""
    given = list(models)
    training = [part for model in given for part in model.modules() if part.training]
    for model in given if training else ():
        model.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


def _failure(model: nn.Module, inputs: Inputs) -> str | None:
    """Why the module cannot be called with these inputs, in one line, or None."""
    try:
        unwrapped(answered(model, inputs))
    except Exception as error:  # whatever the user's module raises
        return told_by(error)
    return None


def told_by(error: Exception) -> str:
    """What an error of somebody else's module says, in its first line; its type if it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
