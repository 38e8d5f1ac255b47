"""Features as a torch module takes them: one tensor, or a dict of tensors for the arguments of ``forward``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from glasshouse.errors import InputError
from glasshouse.population import count_records, is_frame, select, table_of_numbers

__all__ = ["Inputs", "called", "first_tensor", "moved", "reader_for", "rows_of", "tensor_of"]

Inputs = Tensor | dict[str, Tensor]

_LOOK = 8  # records that show whether a module takes whole numbers


def reader_for(model: nn.Module, x: Any) -> Callable[[Any], Inputs]:
    """A function from rows of these features to what this module takes, decided once, from a few records.

    Floats get the precision of the module's weights. Whole numbers stay whole numbers if the module takes them, as an
    embedding does, and become floats if it does not, as a linear layer. A dict of arrays becomes a dict of tensors;
    nothing but the precision of its floats is changed, and the module is called with its keys as names.

    Args:
        model: on its device.
        x: [N, ...] features of all records, as a `Population` holds them.

    Example:
        >>> whole = np.array([[1, 2], [3, 0]])
        >>> reader_for(nn.Embedding(4, 8), whole)(whole).dtype, reader_for(nn.Linear(2, 8), whole)(whole).dtype
        (torch.int64, torch.float32)
    """
    weights = next((one for one in model.parameters() if one.is_floating_point()), None)
    floats = torch.float32 if weights is None else weights.dtype
    device = torch.device("cpu") if weights is None else weights.device

    def as_given(rows: Any) -> Inputs:
        return _in_precision(rows, floats)

    def as_floats(rows: Any) -> Inputs:
        return tensor_of(rows).to(floats)

    few = select(x, _telling_rows(x))
    given = as_given(few)
    if isinstance(given, Tensor) and given.is_floating_point():
        return as_given
    error = _failure(model, moved(given, device))
    if error is None:
        return as_given
    if isinstance(given, dict):
        raise InputError(
            f"module: it cannot be called with {', '.join(given)}: {error}. The keys of a dict are the names of the "
            f"arguments of forward; leave_out=[…] leaves one out."
        )
    also = _failure(model, moved(as_floats(few), device))
    if also is not None:
        raise InputError(f"module: it takes the features neither as whole numbers ({error}) nor as floats ({also}).")
    return as_floats


def tensor_of(x: Any) -> Tensor:
    """Features as a tensor: arrays, tensors, sparse matrices and numeric data frames.

    Floats become float32 and whole numbers int64; tensors stay as they are.

    Example:
        >>> tensor_of(np.zeros((2, 3))).dtype, tensor_of(np.zeros((2, 3), dtype=np.uint8)).dtype
        (torch.float32, torch.int64)
    """
    if isinstance(x, Tensor):
        return x
    array = _array(x)
    kind = np.float32 if array.dtype.kind == "f" else np.bool_ if array.dtype.kind == "b" else np.int64
    # a copy if numpy's memory is read-only or strided: torch would warn or refuse
    return torch.from_numpy(np.require(array.astype(kind, copy=False), requirements=["C", "W"]))


def called(model: Callable[..., Any], inputs: Inputs) -> Any:
    """What a module answers: a dict gives its tensors by name.

    Example:
        >>> called(lambda input_ids: input_ids + 1, {"input_ids": torch.zeros(2)})
        tensor([1., 1.])
    """
    return model(**inputs) if isinstance(inputs, dict) else model(inputs)


def rows_of(inputs: Inputs, rows: Tensor | slice) -> Inputs:
    """Some records of the inputs.

    Example:
        >>> rows_of({"input_ids": torch.arange(3)}, slice(0, 2))
        {'input_ids': tensor([0, 1])}
    """
    if isinstance(inputs, dict):
        return {name: values[rows] for name, values in inputs.items()}
    return inputs[rows]


def moved(inputs: Inputs, device: torch.device | str) -> Inputs:
    """The inputs on a device.

    Example:
        >>> moved({"input_ids": torch.zeros(2)}, "cpu")["input_ids"].device
        device(type='cpu')
    """
    if isinstance(inputs, dict):
        return {name: values.to(device) for name, values in inputs.items()}
    return inputs.to(device)


def first_tensor(inputs: Inputs) -> Tensor:
    """The inputs, or the first of several.

    Example:
        >>> first_tensor({"input_ids": torch.zeros(2, 5)}).shape
        torch.Size([2, 5])
    """
    return next(iter(inputs.values())) if isinstance(inputs, dict) else inputs


def _telling_rows(x: Any) -> np.ndarray:
    """A few records, and those with the smallest and largest whole numbers, which an embedding may not have."""
    count = count_records(x)
    rows = [np.arange(min(_LOOK, count))]
    for values in x.values() if isinstance(x, Mapping) else [x]:
        whole = (
            values.detach().cpu().numpy() if isinstance(values, Tensor) and not values.is_floating_point() else values
        )
        if isinstance(whole, np.ndarray) and whole.dtype.kind in "iu" and whole.size:
            rows.append(np.array([whole.argmin(), whole.argmax()]) // (whole.size // count))
    return np.unique(np.concatenate(rows))


def _in_precision(x: Any, floats: torch.dtype) -> Inputs:
    """Tensors with floats of one precision, and whole numbers as int64; a single one has no truth values."""
    if isinstance(x, Mapping):
        return {name: _single(values, floats, name) for name, values in x.items()}
    found = _single(x, floats)
    return found.long() if found.dtype == torch.bool else found


def _single(x: Any, floats: torch.dtype, name: str | None = None) -> Tensor:
    if isinstance(x, Tensor):
        found = x
    elif floats == torch.float64 and (array := _array(x, name)).dtype.kind == "f":
        return torch.from_numpy(np.require(array.astype(np.float64, copy=False), requirements=["C", "W"]))
    else:
        found = tensor_of(x) if name is None else tensor_of(_array(x, name))
    if found.is_floating_point():
        return found.to(floats)
    return found if found.dtype == torch.bool else found.long()


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


def _failure(model: nn.Module, inputs: Inputs) -> str | None:
    """Why the module cannot be called with these inputs, in one line, or None. It is left as it was."""
    training = model.training
    devices = [one.device for one in (first_tensor(inputs),) if one.device.type == "cuda"]
    try:
        with torch.random.fork_rng(devices), torch.no_grad():
            called(model.eval(), inputs)
    except Exception as error:  # whatever the user's module raises
        return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    finally:
        model.train(training)
    return None
