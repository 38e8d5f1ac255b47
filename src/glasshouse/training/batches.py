"""What all torch trainers share: shuffled batches, and the loss."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from glasshouse.errors import InputError
from glasshouse.model_outputs import check_order_of_outputs, ends_in_sigmoid, looks_like_probabilities, unwrapped
from glasshouse.training.batching import say_once

__all__ = ["batch_count", "batches", "classification_loss", "failure_line", "logits_of"]

_LOOK = 64  # records that show what a module answers with
_TINY = 1e-7  # below this, p or 1 - p in float32 has no digits to learn from
_SOFTMAX = (
    "The module gives probabilities, not logits (it ends in softmax or sigmoid), and is trained on their logarithms."
)


def classification_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy; logits [B, C], or [B] or [B, 1] for two classes.

    Example:
        >>> round(float(classification_loss(torch.zeros(3), torch.tensor([0, 1, 1]))), 4)
        0.6931
    """
    if logits.ndim == 1 or logits.shape[1] == 1:
        return nn.functional.binary_cross_entropy_with_logits(logits.reshape(-1), labels.to(logits.dtype))
    return nn.functional.cross_entropy(logits, labels)


def logits_of(
    model: nn.Module, *inputs: Tensor, classes: int | None = None, call: Callable[[nn.Module], Any] | None = None
) -> Callable[[Any], Tensor]:
    """From what this module returns to logits in float32, decided once, from its answers to some records.

    Answers in a dict, a tuple or an object with ``logits`` are unwrapped. A module that ends in softmax (or whose last
    layer is a sigmoid) is trained on the logarithms of its probabilities, not on the probabilities as if they were
    logits; the log ``glasshouse`` says so. This check changes no weights, no statistics and no random numbers.

    Args:
        model: untrained.
        *inputs: on its device: records [B, ...], of which a few are used; or the features and edges of a graph.
        classes: how many classes there are; fewer logits are refused.
        call: what calls the module, if that takes more than its inputs.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 2), nn.Softmax(dim=1))
        >>> read = logits_of(model, torch.zeros(3, 4))
        >>> read(torch.tensor([[0.25, 0.75]])).exp()
        tensor([[0.2500, 0.7500]])
    """
    training = model.training
    devices = [inputs[0].device] if inputs[0].device.type == "cuda" else []
    looked = (inputs[0][:_LOOK],) if len(inputs) == 1 else inputs
    try:
        with torch.random.fork_rng(devices), torch.no_grad():
            whole = model.eval()(*looked) if call is None else call(model.eval())
            if classes is not None:
                check_order_of_outputs(whole, classes, place="module")
            answer = unwrapped(whole)
    except InputError:  # whatever calls the module has already said it
        raise
    except TypeError as error:
        raise InputError(f"module: it cannot be called with {len(inputs)} tensors: {error}.") from error
    except (RuntimeError, ValueError, IndexError) as error:
        if isinstance(error, torch.OutOfMemoryError) or len(inputs) > 1:
            raise
        raise InputError(f"module: it cannot be called with {failure_line(inputs[0], error)}") from error
    model.train(training)
    if not isinstance(answer, Tensor):
        raise InputError(f"module: it answers with {type(answer).__name__}; expected a tensor of logits, [B, C].")
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


def failure_line(x: Tensor, error: Exception) -> str:
    """What a module was called with and how it failed, in one line.

    Example:
        >>> failure_line(torch.zeros(2, 3), RuntimeError("shapes do not fit"))
        'records of shape [3]: shapes do not fit.'
    """
    first = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return f"records of shape {list(x.shape[1:])}: {first}."


def batches(
    count: int, size: int, random: torch.Generator, device: torch.device | str | None = None
) -> Iterator[Tensor]:
    """Row indices of one epoch's shuffled batches; a lone last record joins the batch before it (batch norm needs two).

    Args:
        count: records in all.
        size: records per batch.
        random: the order comes from it, on the CPU, so that it is the same on every device.
        device: where the indices are needed. They are copied once per epoch: one copy per step would make the CPU wait
            for the GPU, and then the GPU for the CPU.

    Example:
        >>> [len(rows) for rows in batches(5, 2, torch.Generator().manual_seed(0))]
        [2, 3]
    """
    order = torch.randperm(count, generator=random).to(device)
    for start, end in itertools.pairwise(_edges(count, size)):
        yield order[start:end]


def batch_count(count: int, size: int) -> int:
    """How many batches an epoch has.

    Example:
        >>> batch_count(5, 2)
        2
    """
    return len(_edges(count, size)) - 1


def _edges(count: int, size: int) -> list[int]:
    edges = [*range(0, count, size), count]
    if len(edges) > 2 and edges[-1] - edges[-2] == 1:
        del edges[-2]
    return edges
