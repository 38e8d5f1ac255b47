"""Call a model once: what it takes is found by trying, and what it answers is checked."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.errors import InputError, first_line
from glasshouse.graph.models.arguments import Arguments, bind_arguments
from glasshouse.graph.models.edge_values import held_values, with_edges
from glasshouse.graph.models.model import Model
from glasshouse.graph.programs.reach import rounding
from glasshouse.model_outputs import check_order_of_outputs, unwrapped

__all__ = ["answer_of", "call_first", "try_call"]


def answer_of(model: Any, data: Data, arguments: Arguments, *, classes: int | None = None) -> Tensor:
    """A model's answers about all nodes of a graph, [n, classes], as it gives them: logits or probabilities.

    Args:
        model: the model.
        data: the graph.
        arguments: what it is called with.
        classes: how many there are, if a model is called for the first time: one of several arrays must be the logits.

    Example:
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]))
        >>> answer_of(lambda x, edge_index: x[:1], data, Arguments())
        Traceback (most recent call last):
        glasshouse.errors.InputError: model: it answered 2 nodes with shape [1, 2]; expected [2, classes], one logit ...
    """
    whole, count = arguments.call(model, data), len(data.x)
    if classes is not None:
        check_order_of_outputs(whole, classes)
    answer = unwrapped(whole)
    if not isinstance(answer, Tensor):
        answer = torch.as_tensor(answer, device=data.x.device)
    if not answer.is_floating_point():
        raise InputError(
            f"model: it answered with whole numbers ({answer.dtype}), which do not show how sure it is. Give logits "
            f"or probabilities of all classes."
        )
    if answer.ndim != 2 or len(answer) != count:
        raise InputError(
            f"model: it answered {count} nodes with shape {list(answer.shape)}; expected [{count}, classes], one "
            f"logit per class for every node."
        )
    return answer.detach()


def try_call(model: Model, data: Data, *, classes: int | None = None) -> tuple[Arguments, Tensor]:
    """What a model is called with, found by trying it on a graph, and its answers there [n, classes].

    What its signature says is tried first, then the other of one `Data` or ``x`` and ``edge_index``. If it answers with
    several arrays, the number of classes shows whether the first of them holds the logits.

    Example:
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]))
        >>> try_call(lambda *given: given[0].x, data)[0].takes_data  # the signature does not show it
        True
    """
    guess = bind_arguments(model, held_values(data))
    faults = []
    for arguments in (guess, Arguments(takes_data=not guess.takes_data, held=guess.held)):
        try:
            answer = answer_of(model, data, arguments, classes=classes)
        except InputError:
            raise
        except Exception as error:
            faults.append(first_line(error))
            continue
        rounding(lambda *_: answer_of(model, data, arguments), data.x, data.edge_index, answer)  # noqa: B023 (used at once)
        if arguments.takes_data:
            arguments = replace(arguments, ignored=_ignored(model, data, arguments, answer))
        return arguments, answer
    raise InputError(_uncallable(guess, data, faults[0]))


def call_first(model: Model, data: Data, arguments: Arguments) -> Any:
    """What a model returns when it is called for the first time; if it fails, one line says what it was given.

    Example:
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]))
        >>> call_first(lambda x, adjacency: adjacency @ x, data, Arguments())
        Traceback (most recent call last):
        glasshouse.errors.InputError: model: it cannot be called as model(x, edge_index): RuntimeError: ...
    """
    try:
        return arguments.call(model, data)
    except (InputError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise InputError(_uncallable(arguments, data, first_line(error))) from error


def _ignored(model: Model, data: Data, arguments: Arguments, answer: Tensor) -> tuple[str, ...]:
    """Values of edges without which a model that takes a `Data` answers the same."""
    found = []
    for name, _ in arguments.held:
        without = with_edges(data)
        del without[name]
        with contextlib.suppress(Exception):  # it needs them
            if torch.allclose(answer_of(model, without, arguments), answer):
                found.append(name)
    return tuple(found)


def _uncallable(arguments: Arguments, data: Data, fault: str) -> str:
    if arguments.takes_data:
        held = ", ".join(sorted(data.keys()))
        return f"model: it cannot be called as model(data): {fault.rstrip('.')}. The data has {held}."
    given = [f"{parameter}=data.{name}" for parameter, name in arguments.bound]
    advice = "".join(f" Set data.{name} = None if it was trained without." for _, name in arguments.bound)
    return f"model: it cannot be called as model({', '.join(['x', 'edge_index', *given])}): {fault}{advice}"
