"""What a torch trainer minimises: the cross-entropy of classes, or the squared error (Gaussian) of real numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from glasshouse.errors import InputError
from glasshouse.model_outputs import unwrapped
from glasshouse.population import Population
from glasshouse.training.batches import classification_loss, failure_line, logits_of
from glasshouse.training.inputs import Inputs, called, first_tensor, rows_of

__all__ = ["answers_for", "labels_of", "loss_for", "regression_loss"]

_LOOK = 64  # records that show what a module answers with


def regression_loss(answers: Tensor, targets: Tensor) -> Tensor:
    """Mean squared error of [B] or [B, 1] predictions; of [B, 2], mean and log-variance, the Gaussian's.

    The Gaussian's negative log-likelihood is taken without its constant.

    Example:
        >>> regression_loss(torch.tensor([[1.0], [2.0]]), torch.tensor([1.0, 4.0]))
        tensor(2.)
        >>> regression_loss(torch.tensor([[1.0, 0.0], [2.0, 0.0]]), torch.tensor([1.0, 4.0]))
        tensor(1.)
    """
    if answers.ndim == 2 and answers.shape[1] == 2:
        mean, log_variance = answers.unbind(1)
        return 0.5 * ((targets - mean) ** 2 * torch.exp(-log_variance) + log_variance).mean()
    return nn.functional.mse_loss(answers.reshape(-1), targets)


def loss_for(population: Population) -> Callable[[Tensor, Tensor], Tensor]:
    """The mean loss of a batch, from what `answers_for` gives and from `labels_of`."""
    return regression_loss if population.regression else classification_loss


def labels_of(population: Population) -> Tensor:
    """[N] columns of the true classes, or the targets of a regression in single precision.

    Example:
        >>> labels_of(Population([[0.0], [1.0]], [0.5, 2.0], regression=True))
        tensor([0.5000, 2.0000])
    """
    labels = torch.from_numpy(population.y)
    return labels.float() if population.regression else labels


def answers_for(
    population: Population, model: nn.Module, inputs: Inputs, *, classes: int | None = None
) -> Callable[[Any], Tensor]:
    """From what this module returns to logits, or to predictions of a regression; a wrong shape is refused here.

    Args:
        population: what it is trained on.
        model: untrained.
        inputs: records [B, ...] on its device, or a dict of them.
        classes: how many classes there are; fewer logits are refused.

    Example:
        >>> population = Population([[0.0], [1.0]], [0.5, 2.0], regression=True)
        >>> answers_for(population, nn.Linear(1, 3), torch.zeros(2, 1))
        Traceback (most recent call last):
        glasshouse.errors.InputError: module: it answers 2 records with shape [2, 3]; a regression expects [2], \
[2, 1], or [2, 2] with the mean and the logarithm of the variance.
    """
    first, few = first_tensor(inputs), rows_of(inputs, slice(0, _LOOK))
    if not population.regression:
        call = None if isinstance(inputs, Tensor) else lambda module: called(module, few)
        return logits_of(model, first, classes=classes, call=call)
    training, count = model.training, len(first[:_LOOK])
    try:
        with torch.random.fork_rng([first.device] if first.device.type == "cuda" else []), torch.no_grad():
            answer = unwrapped(called(model.eval(), few))
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        if isinstance(error, torch.OutOfMemoryError | InputError):
            raise
        raise InputError(f"module: it cannot be called with {failure_line(first, error)}") from error
    model.train(training)
    if not isinstance(answer, Tensor) or tuple(answer.shape) not in ((count,), (count, 1), (count, 2)):
        shape = list(answer.shape) if isinstance(answer, Tensor) else type(answer).__name__
        raise InputError(
            f"module: it answers {count} records with shape {shape}; a regression expects [{count}], [{count}, 1], or "
            f"[{count}, 2] with the mean and the logarithm of the variance."
        )
    return lambda given: unwrapped(given).float()
