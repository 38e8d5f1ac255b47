"""A large question in blocks of masks and nodes, each a task of its own: here, or for the workers of an audit."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from glasshouse.arrays import FloatArray
from glasshouse.compute import is_worth_spreading, spread
from glasshouse.graph.models.asking import meet, quiet
from glasshouse.graph.models.model import Model
from glasshouse.graph.models.tensor_memory import open_memory
from glasshouse.graph.rule.question import Question
from glasshouse.graph.rule.toggle.compiled.workers import even_cuts
from glasshouse.graph.rule.toggle.cost import question_seconds
from glasshouse.graph.rule.toggle.registry import engines
from glasshouse.progress import open_bar

__all__ = ["Block", "answer_block", "answer_in_blocks", "blocks_of", "cut_question"]

_SECONDS = 4.0  # of a block, as predicted; how it is split changes last bits, so it must depend on the question alone
_SHORT = 0.5  # the same where a split changes no bit: no worker waits long for the last block


class Block(NamedTuple):
    """A part of a question: ranges of its masks and of its nodes."""

    masks: tuple[int, int]
    nodes: tuple[int, int]


def cut_question(masks: int, nodes: int, *, seconds: float, each: float = _SECONDS) -> list[Block]:
    """Blocks of some seconds each: whole masks, or parts of one mask's nodes if one mask takes longer.

    Args:
        masks: how many there are.
        nodes: how many there are.
        seconds: predicted for the whole question.
        each: predicted for one block.

    Example:
        >>> cut_question(4, 100, seconds=8.0)
        [Block(masks=(0, 2), nodes=(0, 100)), Block(masks=(2, 4), nodes=(0, 100))]
        >>> len(cut_question(4, 100, seconds=1.0)), len(cut_question(4, 100, seconds=32.0))
        (1, 8)
        >>> len(cut_question(4, 100, seconds=1.0, each=0.5))
        2
    """
    wanted = max(1, int(seconds / each))
    groups = min(wanted, masks)
    parts = min(max(1, wanted // max(masks, 1)), max(nodes, 1))
    return [Block(rows, columns) for rows in even_cuts(masks, groups) for columns in even_cuts(nodes, parts)]


def answer_in_blocks(name: str, models: Sequence[Model], question: Question, *, memory: int) -> Tensor:
    """S and own losses [2, models, masks, nodes] by a named engine, for models of one shape.

    If the engine's answers about a node do not depend on what else is asked, and there are no workers, the question
    stays whole; otherwise it is cut, so that the same question gives the same bytes wherever it is answered.

    Args:
        name: of the engine.
        models: of one shape, which were met.
        question: graph, masks and nodes.
        memory: bytes that a block may take.
    """
    engine = engines()[name]
    apart = getattr(engine, "apart", False)
    blocks, seconds = blocks_of(name, models, question)
    if len(blocks) == 1 or (apart and not is_worth_spreading(seconds)):
        return torch.stack(tuple(engine.toggles(models, question, memory=memory)))
    shape = (2, len(models), len(question.masks), len(question.nodes))
    found = torch.empty(shape, dtype=torch.float64, device=question.x.device)
    with open_bar(total=len(blocks), label="Toggled nodes", unit="blocks") as done:
        for at, part in spread(answer_block, (name, tuple(models), question, memory), blocks, seconds=seconds):
            rows, columns = blocks[at]
            own = np.require(part, requirements="W")  # what comes from a cluster may be read only
            found[:, :, slice(*rows), slice(*columns)] = torch.from_numpy(own).to(found.device)
            done(1)
    return found


def blocks_of(name: str, models: Sequence[Model], question: Question) -> tuple[list[Block], float]:
    """The blocks of a question for a named engine, and the seconds that are predicted for all of them."""
    engine = engines()[name]
    seconds = question_seconds(engine.seconds(models, question), question, models=len(models))
    each = _SHORT if getattr(engine, "apart", False) else _SECONDS
    return cut_question(len(question.masks), len(question.nodes), seconds=seconds, each=each), seconds


def answer_block(name: str, models: Sequence[Model], question: Question, memory: int, block: Block) -> FloatArray:
    """S and own losses of one block, [2, models, masks, nodes]."""
    rows, columns = slice(*block.masks), slice(*block.nodes)
    part = dataclasses.replace(question, masks=question.masks[rows], nodes=question.nodes[columns])
    with open_memory():
        meet(models, question.graph(), labels=question.labels)
        with quiet(models):
            answer: Any = torch.stack(tuple(engines()[name].toggles(models, part, memory=memory)))
    return answer.cpu().numpy()  # type: ignore[no-any-return]
