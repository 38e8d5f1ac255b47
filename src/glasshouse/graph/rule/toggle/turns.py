"""Parts of the targets in turn, on a CPU as many at a time as there are cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from glasshouse.graph.programs.stacked import is_direct
from glasshouse.graph.rule.toggle.layers.unknown import Unknown
from glasshouse.graph.rule.toggle.lowering import MessageOperation
from glasshouse.graph.rule.toggle.stages import Placed
from glasshouse.training.batching import spread

__all__ = ["are_safe", "in_turns"]


def in_turns(work: Callable[[slice], Tensor], parts: Sequence[slice], *, device: torch.device, threads: bool) -> Tensor:
    """The results of all parts, one after another.

    The parts do not depend on the number of cores, so that neither do the last bits. Torch's own threads wait for each
    other at every operation; parts wait only once, at the end.

    Args:
        work: makes the rows of one part.
        parts: in the order of the result.
        device: on a GPU parts come one at a time.
        threads: whether parts may be worked on at the same time.

    Example:
        >>> parts = [slice(0, 2), slice(2, 3)]
        >>> in_turns(lambda part: torch.arange(9)[part], parts, device=torch.device("cpu"), threads=True)
        tensor([0, 1, 2])
    """
    if not threads or device.type != "cpu" or len(parts) == 1 or torch.get_num_threads() == 1:
        return torch.cat([work(part) for part in parts])

    @torch.no_grad()  # each thread has its own switch
    def some(group: list[int]) -> list[Tensor]:
        return [work(parts[number]) for number in group]

    return torch.cat(spread(some, [[number] for number in range(len(parts))], device=device))


def are_safe(placed: Sequence[Placed]) -> bool:
    """Whether threads may share the operations: none calls a user's own module, which may keep a state.

    A layer of unknown type is called, but each thread has its own copy.
    """
    return all(
        not isinstance(one.operation.layer, Unknown) or one.operation.layer.threads
        if isinstance(one.operation, MessageOperation)
        else is_direct(one.operation.function)
        for one in placed
    )
