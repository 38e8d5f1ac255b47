"""What batched training shares: many weights in one tensor, optimizers for these, batches spread over the cores."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.func import stack_module_state

__all__ = ["ModuleBatch", "one_thread_per_operation", "optimizer_obstacle", "say_once", "split", "spread"]

Result = TypeVar("Result")

# Each computes a parameter's new entry from that entry's own gradients, so K models in one tensor stay K models.
_ELEMENTWISE: tuple[type[torch.optim.Optimizer], ...] = (
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.Adamax,
    torch.optim.NAdam,
    torch.optim.RAdam,
    torch.optim.Adagrad,
    torch.optim.Adadelta,
    torch.optim.RMSprop,
    torch.optim.Rprop,
)
_BATCH_BYTES = 2**30  # a larger batch of models is split: more models at once need memory and bring no more speed


class ModuleBatch:
    """K modules of one architecture as tensors with a leading dimension of K, and back.

    Args:
        models: untrained modules, each with its own weights; `unbatch` fills them.

    Attributes:
        parameters: by name, leaf tensors [K, ...] for an optimizer.
        buffers: by name, [K, ...].

    Example:
        >>> batch = ModuleBatch([nn.Linear(3, 2) for _ in range(4)])
        >>> batch.parameters["weight"].shape
        torch.Size([4, 2, 3])
        >>> [type(model).__name__ for model in batch.unbatch()]
        ['Linear', 'Linear', 'Linear', 'Linear']
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        self.models = list(models)
        batched, self.buffers = stack_module_state(self.models)
        self.parameters: dict[str, nn.Parameter] = {name: _leaf(tensor) for name, tensor in batched.items()}

    @torch.no_grad()
    def unbatch(self) -> list[nn.Module]:
        """The modules with the weights of the batch, in evaluation mode."""
        for index, model in enumerate(self.models):
            for name, parameter in model.named_parameters():
                parameter.copy_(self.parameters[name][index])
            for name, buffer in model.named_buffers():
                buffer.copy_(self.buffers[name][index])
            model.zero_grad(set_to_none=True)
            model.eval()
        return self.models


def _leaf(tensor: Tensor) -> nn.Parameter:
    """A leaf whose matrices [out, in] lie in memory as [in, out], as a product with them from the right reads them."""
    if tensor.ndim == 3:
        tensor = tensor.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_(tensor.requires_grad)
    return nn.Parameter(tensor.detach(), requires_grad=tensor.requires_grad)


def optimizer_obstacle(
    make: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer], parameters: Iterable[nn.Parameter]
) -> str | None:
    """Why this optimizer cannot act on batched parameters, or None.

    Example:
        >>> optimizer_obstacle(torch.optim.Adam, nn.Linear(2, 2).parameters()) is None
        True
        >>> optimizer_obstacle(torch.optim.LBFGS, nn.Linear(2, 2).parameters())
        'the optimizer LBFGS mixes entries of the weights, so models would mix'
    """
    optimizer = make(parameters)
    name = type(optimizer).__name__
    if type(optimizer) not in _ELEMENTWISE:  # a subclass may do anything, such as clipping by a norm
        known = any(isinstance(optimizer, kind) for kind in _ELEMENTWISE)
        return (
            f"the optimizer {name} is a subclass, which may mix entries of the weights"
            if known
            else f"the optimizer {name} mixes entries of the weights, so models would mix"
        )
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        return f"the optimizer {name} has hooks, which may mix entries of the weights"
    return None


@functools.cache
def say_once(text: str) -> None:
    """Write a text to the log ``glasshouse``, once for each text.

    Example:
        >>> say_once("Trained one at a time: an example.")
    """
    logging.getLogger("glasshouse").info(text)


def split(sizes: Sequence[int], *, bytes_each: int, device: torch.device, together: int) -> list[list[int]]:
    """Which models are trained together: those of one size, as many as fit in memory, ``together`` at most on a CPU.

    That number does not depend on the number of cores: a model's last bits depend on the other models in its batch, and
    the same request must give the same bytes on one core and on many.

    Example:
        >>> split([5, 6, 5, 5], bytes_each=2**29, device=torch.device("cuda"), together=4)
        [[0, 2], [3], [1]]
    """
    most = max(1, _BATCH_BYTES // max(1, bytes_each))
    if device.type == "cpu":
        most = min(most, together)
    alike: dict[int, list[int]] = defaultdict(list)
    for index, size in enumerate(sizes):
        alike[size].append(index)
    return [models[start : start + most] for models in alike.values() for start in range(0, len(models), most)]


def spread(
    work: Callable[[list[int]], list[Result]],
    groups: Sequence[list[int]],
    *,
    device: torch.device,
    workers: int | None = None,
) -> list[Result]:
    """Run ``work`` on every group of model numbers; results for model 0, 1, …. On a CPU each core takes whole groups.

    Torch's own threads wait for each other at every operation, also for a core that another program uses; groups wait
    for each other only once, at the end.

    Example:
        >>> spread(lambda group: [10 * index for index in group], [[0, 2], [1]], device=torch.device("cpu"))
        [0, 10, 20]
    """
    if device.type == "cpu":
        workers = min(workers or torch.get_num_threads(), len(groups))
        # each worker must set it too: OpenMP counts threads for each calling thread, and would start as many again
        pool = ThreadPoolExecutor(max(1, workers), initializer=torch.set_num_threads, initargs=(1,))
        with one_thread_per_operation(), pool:
            found = list(pool.map(work, groups))
    else:
        found = [work(group) for group in groups]
    pairs = zip((index for group in groups for index in group), (one for some in found for one in some), strict=True)
    return [one for _, one in sorted(pairs, key=lambda pair: pair[0])]


@contextlib.contextmanager
def one_thread_per_operation() -> Iterator[None]:
    """Torch uses one thread within; afterwards as many as before.

    Example:
        >>> with one_thread_per_operation():
        ...     torch.get_num_threads()
        1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
