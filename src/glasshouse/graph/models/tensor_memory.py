"""What was computed from a tensor of a graph once, such as its copy on a GPU: kept as long as the tensor lives."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

__all__ = ["on_device", "remembered"]

T = TypeVar("T")

_KNOWN: Any = WeakTensorKeyDictionary()  # tensor -> its version, and what is known by name


def remembered(tensor: Tensor, name: Hashable, make: Callable[[], T]) -> T:
    """What ``make`` returns, which must follow from the tensor alone; it is called once per tensor and name.

    A tensor that was written to is another one. The result must not hold the tensor itself, or neither would ever go.

    Args:
        tensor: of a graph, such as its features.
        name: of the result.
        make: computes it.

    Example:
        >>> x = torch.ones(3)
        >>> remembered(x, "sum", lambda: float(x.sum())), remembered(x, "sum", lambda: -1.0)
        (3.0, 3.0)
        >>> _ = x.add_(1)
        >>> remembered(x, "sum", lambda: float(x.sum()))
        6.0
    """
    if tensor.is_inference():  # its writes are not counted
        return make()
    version, known = _KNOWN.get(tensor, (None, {}))
    if version != tensor._version:
        known = {}
        _KNOWN[tensor] = (tensor._version, known)
    if name not in known:
        known[name] = make()
    found: T = known[name]
    return found


def on_device(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor itself, or its one copy on another device: features and edges are not sent there for every query.

    Args:
        tensor: of a graph.
        device: where it is wanted.

    Example:
        >>> x = torch.ones(3)
        >>> on_device(x, torch.device("cpu")) is x
        True
        >>> on_device(x, torch.device("meta")) is on_device(x, torch.device("meta"))
        True
    """
    if str(device) == "cuda":
        device = torch.device("cuda", torch.cuda.current_device())  # one copy, however the device is named
    if tensor.device == device:
        return tensor
    return remembered(tensor, ("on", str(device)), lambda: tensor.to(device))
