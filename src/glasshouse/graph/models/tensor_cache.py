"""What was computed from a tensor of a graph once, such as its copy on a GPU: kept while a memory is open.

A tensor counts the writes to it, but an array of numpy may share its values, and writes to that are not counted. So
nothing is kept for longer than one audit: a memory belongs to a scene, or to one call.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

T = TypeVar("T")


def once(known: dict[Any, Any], name: Hashable, make: Callable[[], T]) -> T:
    """What ``make`` returned the first time, by its name among what is known."""
    if name not in known:
        known[name] = make()
    found: T = known[name]
    return found


class Memory:
    """What is known about tensors, each by a weak reference; used by `remembered` while it is open."""

    def __init__(self) -> None:
        self.known: Any = WeakTensorKeyDictionary()  # tensor -> its version, and what is known by name

    @contextmanager
    def open(self) -> Iterator[None]:
        """Use it inside the block."""
        _OPEN.append(self)
        try:
            yield
        finally:
            _OPEN.remove(self)


_OPEN: list[Memory] = []


@contextmanager
def open_memory() -> Iterator[None]:
    """Let one call remember: in the memory that is open, or in one of its own."""
    if _OPEN:
        yield
        return
    with Memory().open():
        yield


def remembered(tensor: Tensor, name: Hashable, make: Callable[[], T]) -> T:
    """What ``make`` returns, which must follow from the tensor alone; called once per tensor and name in a memory.

    A tensor that was written to is another one. The result must not hold the tensor itself, or neither would ever go.
    """
    if not _OPEN or tensor.is_inference():  # writes to an inference tensor are not counted
        return make()
    version, known = _OPEN[-1].known.get(tensor, (None, {}))
    if version != tensor._version:
        known = {}
        _OPEN[-1].known[tensor] = (tensor._version, known)
    return once(known, name, make)


def on_device(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor itself, or its copy on another device, one per memory: features are not sent there for every query."""
    if str(device) == "cuda":
        device = torch.device("cuda", torch.cuda.current_device())  # one copy, however the device is named
    if tensor.device == device:
        return tensor
    return remembered(tensor, ("on", str(device)), lambda: tensor.to(device))
