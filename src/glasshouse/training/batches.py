"""What all torch trainers share: shuffled batches, the loss that is minimised, and many models in one batch."""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.func import stack_module_state

from glasshouse.core.errors import InputError
from glasshouse.core.outputs import (
    check_order_of_outputs,
    ends_in_sigmoid,
    looks_like_probabilities,
    of_tokens,
    unwrapped,
)
from glasshouse.data import Population
from glasshouse.training.inputs import Inputs, answered, first_tensor, rows_of, told_by

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
    """K untrained modules of one architecture as tensors with a leading dimension of K, and back.

    An optimizer trains ``parameters``, leaf tensors [K, ...] by name; ``buffers`` are by name too.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        self.models = list(models)
        batched, self.buffers = stack_module_state(self.models)
        self.parameters: dict[str, nn.Parameter] = {name: _leaf(tensor) for name, tensor in batched.items()}

    @torch.no_grad()
    def unbatch(self) -> list[nn.Module]:
        """The modules with the weights of the batch, in evaluation mode."""
        whole = {**self.parameters, **self.buffers}
        for index, model in enumerate(self.models):
            for name, tensor in (*model.named_parameters(), *model.named_buffers()):
                tensor.copy_(whole[name][index])
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
    """Why this optimizer cannot act on batched parameters, or None."""
    optimizer = make(parameters)
    name = type(optimizer).__name__
    if not isinstance(optimizer, _ELEMENTWISE):
        return f"the optimizer {name} mixes entries of the weights, so models would mix"
    if type(optimizer) not in _ELEMENTWISE:  # it may do anything, such as clipping by a norm
        return f"the optimizer {name} is a subclass, which may mix entries of the weights"
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        return f"the optimizer {name} has hooks, which may mix entries of the weights"
    return None


@functools.cache
def say_once(text: str) -> None:
    """Write a text to the log ``glasshouse``, once for each text."""
    logging.getLogger("glasshouse").info(text)


def split(sizes: Sequence[int], *, bytes_each: int, device: torch.device, together: int) -> list[list[int]]:
    """Which models are trained together: those of one size, as many as fit in memory, ``together`` at most on a CPU.

    That number does not depend on the number of cores: a model's last bits depend on the other models in its batch, and
    the same request must give the same bytes on one core and on many.
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
    """
    workers = min(workers or torch.get_num_threads(), len(groups))
    if device.type != "cpu":
        found = [work(group) for group in groups]
    elif workers < 2:  # a user's own module is asked by the thread that asks
        with one_thread_per_operation():
            found = [work(group) for group in groups]
    else:
        # each worker must set it too: OpenMP counts threads for each calling thread, and would start as many again
        pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
        with one_thread_per_operation(), pool:
            found = list(pool.map(work, groups))
    numbers, results = itertools.chain(*groups), itertools.chain(*found)
    return [one for _, one in sorted(zip(numbers, results, strict=True), key=lambda pair: pair[0])]


@contextlib.contextmanager
def one_thread_per_operation() -> Iterator[None]:
    """Torch uses one thread within; afterwards as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


_LOOK = 64  # records that show what a module answers with
_TINY = 1e-7  # below this, p or 1 - p in float32 has no digits to learn from
_SOFTMAX = (
    "The module gives probabilities, not logits (it ends in softmax or sigmoid), and is trained on their logarithms."
)


def logits_of(
    model: nn.Module,
    *inputs: Inputs,  # on its device: records [B, ...], of which a few are used; or the features and edges of a graph
    classes: int | None = None,  # how many there are; fewer logits are refused
    call: Callable[[nn.Module], Any] | None = None,  # what calls the module, if that takes more than records
) -> Callable[[Any], Tensor]:
    """From what this module returns to logits in float32, decided once, from its answers to some records.

    Answers in a dict, a tuple or an object with ``logits`` are unwrapped. A module that ends in softmax (or whose last
    layer is a sigmoid) is trained on the logarithms of its probabilities, not on the probabilities as if they were
    logits; the log ``glasshouse`` says so. This check changes no weights, no statistics and no random numbers.
    """
    whole = _first_answer(model, inputs[0], call, tensors=len(inputs))
    if classes is not None:
        check_order_of_outputs(whole, classes, place="module")
    answer = unwrapped(whole)
    if not isinstance(answer, Tensor):
        raise InputError(f"module: it answers with {type(answer).__name__}; expected a tensor of logits, [B, C].")
    if classes is not None and (advice := of_tokens(tuple(answer.shape))):
        raise InputError(f"module: it answers with shape {list(answer.shape)}; expected [B, {classes}] logits.{advice}")
    width = answer.shape[1] if answer.ndim == 2 else 1
    if classes is not None and width < classes and (width > 1 or classes > 2 or len(inputs) > 1):
        # one logit is enough for two classes of records; nodes need one per class
        raise InputError(f"module: it gives {width} logits, but there are {classes} classes; give one per class.")
    if answer.ndim == 2 and looks_like_probabilities(answer):
        say_once(_SOFTMAX)
        return lambda given: (unwrapped(given).float() + _TINY).log()
    if ends_in_sigmoid(model) and bool(((answer >= 0) & (answer <= 1)).all()):
        say_once(_SOFTMAX)
        return lambda given: torch.logit(unwrapped(given).float(), eps=_TINY)
    return lambda given: unwrapped(given).float()


def _first_answer(
    model: nn.Module, inputs: Inputs, call: Callable[[nn.Module], Any] | None = None, *, tensors: int = 1
) -> Any:
    """What a module answers to some records, before it is unwrapped; one that cannot be called with them is refused."""
    try:
        return answered(model, rows_of(inputs, slice(0, _LOOK)), call)
    except InputError:  # whatever calls the module has already said it
        raise
    except TypeError as error:
        count = len(inputs) if isinstance(inputs, dict) else tensors
        raise InputError(f"module: it cannot be called with {count} tensors: {error}.") from error
    except (RuntimeError, ValueError, IndexError) as error:
        if isinstance(error, torch.OutOfMemoryError) or tensors > 1:
            raise
        raise InputError(f"module: it cannot be called with {failure_line(first_tensor(inputs), error)}") from error


def failure_line(x: Tensor, error: Exception) -> str:
    """What a module was called with and how it failed, in one line."""
    return f"records of shape {list(x.shape[1:])}: {told_by(error)}."


def batches(count: int, size: int, random: torch.Generator, device: torch.device | None = None) -> Iterator[Tensor]:
    """Row indices of one epoch's shuffled batches; a lone last record joins the batch before it (batch norm needs two).

    The order comes from ``random``, on the CPU, so that it is the same on every device. The indices are copied to the
    ``device`` once per epoch: one copy per step would make the CPU wait for the GPU, and then the GPU for the CPU.
    """
    order = torch.randperm(count, generator=random).to(device)
    yield from order.split(batch_sizes(count, size))


def batch_sizes(count: int, size: int) -> list[int]:
    """How many records each batch of an epoch has."""
    sizes = [min(size, count - start) for start in range(0, count, size)]
    return sizes if len(sizes) < 2 or sizes[-1] > 1 else [*sizes[:-2], size + 1]


def mean_loss(answers: Tensor, labels: Tensor, *, smoothing: float = 0.0) -> Tensor:
    """The mean loss of a batch, from what `answers_for` gives and from `labels_of`.

    Of classes the cross-entropy; logits are [B, C], or [B] or [B, 1] for two classes. Of real numbers the squared error
    of [B] or [B, 1] predictions; of [B, 2], mean and log-variance, the Gaussian's negative log-likelihood without its
    constant. With ``smoothing`` a class is learned as this share of all classes alike, and the rest of itself (Szegedy
    et al. 2016, Sec. 7).
    """
    if smoothing and labels.is_floating_point():
        raise InputError("label_smoothing: the population is a regression, which has no classes; leave it out.")
    pairs = answers.ndim > 1 and answers.shape[1] > 1
    if not labels.is_floating_point():
        if pairs:
            return nn.functional.cross_entropy(answers, labels, label_smoothing=smoothing)
        wanted = labels.to(answers.dtype) * (1 - smoothing) + smoothing / 2
        return nn.functional.binary_cross_entropy_with_logits(answers.reshape(-1), wanted)
    if pairs:
        mean, log_variance = answers.unbind(1)
        return 0.5 * ((labels - mean) ** 2 * torch.exp(-log_variance) + log_variance).mean()
    return nn.functional.mse_loss(answers.reshape(-1), labels)


def labels_of(population: Population) -> Tensor:
    """[N] columns of the true classes, or the targets of a regression in single precision."""
    labels = torch.from_numpy(population.y)
    return labels.float() if population.regression or labels.is_floating_point() else labels


def answers_for(population: Population, model: nn.Module, inputs: Inputs) -> Callable[[Any], Tensor]:
    """From what this module returns to logits, or to predictions of a regression; a wrong shape is refused here."""
    if population.own_loss:
        return unwrapped
    if not population.regression:
        return logits_of(model, inputs, classes=len(population.classes))
    answer, count = unwrapped(_first_answer(model, inputs)), len(first_tensor(inputs)[:_LOOK])
    if not isinstance(answer, Tensor) or tuple(answer.shape) not in ((count,), (count, 1), (count, 2)):
        shape = list(answer.shape) if isinstance(answer, Tensor) else type(answer).__name__
        raise InputError(
            f"module: it answers {count} records with shape {shape}; a regression expects [{count}], [{count}, 1], or "
            f"[{count}, 2] with the mean and the logarithm of the variance."
        )
    return lambda given: unwrapped(given).float()


_WORTH_SHARING = 1e8  # multiplications per step; below this a second thread costs more waiting time than it saves


@contextlib.contextmanager
def fitting_threads(model: nn.Module, x: Tensor, batch_size: int) -> Iterator[None]:
    """One thread if a step on inputs [N, ...] is too small to share; the user's setting is restored afterwards.

    Weights that are shared over places, as in convolutions, count once per place. On a busy machine two threads of a
    small network wait for each other at every operation: a perceptron on the digits took 2.3 s with one thread and 33 s
    with two while another program was running.
    """
    weights = sum(parameter.numel() for parameter in model.parameters())
    work = weights * batch_size * math.prod(x.shape[2:])
    small = work < _WORTH_SHARING and x.device.type == "cpu"
    with one_thread_per_operation() if small else contextlib.nullcontext():
        yield
