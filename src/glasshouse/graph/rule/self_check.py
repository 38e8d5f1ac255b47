"""Compare the fast engine with the rule as written, on the user's own models and graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch_geometric.data import Data

from glasshouse.core.arrays import FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator
from glasshouse.graph.models.profile import Profiled, evaluation_mode
from glasshouse.graph.models.tensor_cache import open_memory
from glasshouse.graph.programs.program import tolerance
from glasshouse.graph.rule.engines import Block, Stack, answer_block, blocks_of, stacks_of
from glasshouse.graph.rule.incremental.engine import default_memory
from glasshouse.graph.rule.question import Question
from glasshouse.graph.rule.reference import toggle_of
from glasshouse.graph.rule.toggling import engine_names, question_about, settled_engine

_TRIPLES = 8
_MASKS = 8  # as G-BASE draws by default; the choice of an engine depends on their number
_AGAIN = 256  # nodes of a block that are asked about a second time, in other company


@dataclass(frozen=True)
class EngineCheck:
    """How far the engines were from the rule as written.

    Example:
        >>> EngineCheck(triples=8, largest=2.5e-6, engines=("layered",)).sentence()
        'layered; 8 signals against the rule as written: largest difference 2.5e-06'
    """

    triples: int  # how many signals were compared, each of one model, mask and node
    largest: float  # their largest difference
    engines: tuple[str, ...]  # names of the engines that the audit uses

    def sentence(self) -> str:
        """For the report."""
        return (
            f"{', '.join(self.engines)}; {self.triples} signals against the rule as written: largest "
            f"difference {self.largest:.1e}"
        )


def check_engine(models: Sequence[Profiled], data: Data, *, nodes: IntArray, share: float, seed: int) -> EngineCheck:
    """Compare a few signals of an audit with eq. (6) as it is written; raise if they differ.

    The engine, the models, the memory and the nodes that are toggled together are those of the audit: a fault may show
    only in company. For each shape of models one block is answered, and some of its nodes again in another order. Of
    the signals that are compared, half are random, and half are those that the company changed most.

    Args:
        models: the audit's target and shadow models.
        data: its graph.
        nodes: the audited nodes.
        share: share of the nodes that are members in a drawn mask.
        seed: of the choice of models, masks and nodes.
    """
    source = generator(seed, "engine check")
    masks = source.random((_MASKS, int(data.num_nodes))) < share
    work = _MASKS * len(models) ** 2  # as `Scene.engine_for` has it
    found: list[float] = []
    with open_memory():
        question = question_about(models, data, masks, nodes)
        settled = settled_engine(models, question, work=work, least=_MASKS)
        groups = [stack for _, stack in stacks_of(models, question)]
        names = engine_names(models, question) if settled == "auto" else [settled] * len(groups)
        for name, group in zip(names, groups, strict=True):
            found += _differences(name, group, question, count=max(2, _TRIPLES // len(groups)), source=source)
    largest = float(np.max(found))
    if not largest <= tolerance("engine"):
        raise InputError(
            f"model: the fast engine differs from the rule as written by {largest:.2g} on some nodes of this audit, "
            f'so its scores would be wrong. Use {{"name": "g-base", "engine": "reference"}}, which is slow, and report '
            f"this fault."
        )
    return EngineCheck(len(found), largest, tuple(dict.fromkeys(names)))


def _differences(
    name: str, models: Stack, question: Question, *, count: int, source: np.random.Generator
) -> list[float]:
    """How far about ``count`` signals of one block are from the rule, each as a share of S, or of 1 if S is smaller."""
    blocks, _ = blocks_of(name, models, question)
    masks, nodes = (slice(*part) for part in blocks[source.integers(len(blocks))])
    block = dataclasses.replace(question, masks=question.masks[masks], nodes=question.nodes[nodes])
    again = source.permutation(len(block.nodes))[:_AGAIN]
    other = dataclasses.replace(block, nodes=block.nodes[torch.from_numpy(again).to(block.nodes.device)])
    fast, moved = (_signals(name, models, one) for one in (block, other))  # [models, masks, nodes] each
    apart = np.nan_to_num(np.abs(fast[:, :, again] - moved), nan=np.inf).reshape(-1)
    suspects = np.argsort(apart, kind="stable")[::-1][: count // 2]  # one of the two answers must be wrong
    signals = [
        (k, i, again[j], moved[k, i, j]) for k, i, j in zip(*np.unravel_index(suspects, moved.shape), strict=True)
    ]
    some = source.integers(fast.shape, size=(count - len(signals), 3))
    signals += [(k, i, j, fast[k, i, j]) for k, i, j in some]
    found = []
    for k, i, j, other_answer in signals:
        with evaluation_mode([models[k]]):
            wanted, _ = toggle_of(models[k], block, block.masks[i], int(block.nodes[j]))
        worst = np.max(np.abs(np.array([fast[k, i, j], other_answer]) - wanted))
        found.append(float(worst) / max(1.0, abs(wanted)))
    return found


def _signals(name: str, models: Stack, question: Question) -> FloatArray:
    """S [models, masks, nodes] of a question that is one block, with the memory that an audit has."""
    whole = Block((0, len(question.masks)), (0, len(question.nodes)))
    answered: FloatArray = answer_block(name, models, question, default_memory(question.x.device), whole)[0]
    return answered
