"""``toggle_losses``: the signal of Theorem 1 for all models, masks and nodes, by the engine that should be fastest.

An attack chooses one engine for all of its questions, by the work that they are together. An audit holds the engine
against the rule as written, on the user's own models and graph.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import check_finite
from glasshouse.core.randomness import generator
from glasshouse.graph.models.networks import model_device
from glasshouse.graph.models.profile import AnyModel, Profiled, evaluation_mode, profile_models, raw_models
from glasshouse.graph.models.tensor_cache import open_memory
from glasshouse.graph.programs.program import tolerance
from glasshouse.graph.rule import black_box  # noqa: F401 (it registers its engines)
from glasshouse.graph.rule.engines import (
    MODELS_PER_AUDIT,
    Block,
    Stack,
    answer_block,
    answer_in_blocks,
    blocks_of,
    engines,
    question_seconds,
    stacks_of,
)
from glasshouse.graph.rule.incremental.engine import default_memory
from glasshouse.graph.rule.question import Hops, Question, Toggles, ask
from glasshouse.graph.rule.reference import reference_toggles, toggle_of
from glasshouse.graph.rule.two_layers import engine as _two_layers  # noqa: F401 (it registers its engine)

EngineName = Literal["auto", "toggle", "packed", "reference"]


def toggle_losses(
    models: Sequence[AnyModel],
    data: Any,
    masks: Tensor,
    nodes: Tensor,
    *,
    engine: EngineName | str = "auto",
    hops: Hops = "model",
    memory: int | None = None,
) -> Tensor:
    """S_L of the paper's eq. (6) for every model, mask and node, float64 [models, masks, nodes].

    Args:
        models: modules or callables ``(x, edge_index) -> logits``. How far a model that is not ours sees along the
            edges is measured; one that looks at the whole graph is asked about whole graphs. Who asks often passes what
            `profile_models` returns, which is not measured again.
        data: ``torch_geometric.data.Data`` with ``x``, ``edge_index`` and ``y``. Directed and duplicated edges and
            self-loops mean the same as for PyTorch Geometric's layers. A model with parameters for ``edge_weight`` or
            ``edge_attr`` gets those of the edges that it is asked about.
        masks: sampled members, bool [masks, n].
        nodes: target node ids [nodes].
        engine: ``"auto"`` takes the one that should be fastest for an audit of such questions, ``"toggle"`` the same
            but never black-box queries, ``"packed"`` only these, ``"reference"`` the rule as written; or a registered
            engine's name.
        hops: ``"model"`` sums over N_L(v) as in the theorem, ``"affected"`` over every member whose prediction
            changes (one hop further if a layer divides by degrees).
        memory: bytes that the work may take; by default 1 GiB on the CPU; on a GPU 32 GiB or two
            fifths of what is free.

    Example:
        >>> from torch_geometric.data import Data
        >>> from glasshouse.graph.models.networks import build_gnn
        >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0]))
        >>> models = [build_gnn("gcn", features=3, hidden=4, classes=2) for _ in range(2)]
        >>> toggle_losses(models, data, torch.ones(5, 3, dtype=torch.bool), torch.tensor([0, 2])).shape
        torch.Size([2, 5, 2])
    """
    return toggle_answers(models, data, masks, nodes, engine=engine, hops=hops, memory=memory).signal


def toggle_answers(
    models: Sequence[AnyModel], data: Any, masks: Tensor, nodes: Tensor, *, hops: Hops = "model", **options: Any
) -> Toggles:
    """Like `toggle_losses`, with the nodes' own losses, which are a part of S: float64 [models, masks, nodes] each.

    The options are its ``engine`` and ``memory``.

    Example:
        >>> from torch_geometric.data import Data
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> found = toggle_answers([lambda x, edges: x - 1], data, torch.tensor([[True, False]]), torch.tensor([1]))
        >>> found.own, found.signal  # a model without edges: no neighbour's loss changes
        (tensor([[[0.3133]]], dtype=torch.float64), tensor([[[0.3133]]], dtype=torch.float64))
    """
    with open_memory():
        question = ask(data, masks, nodes, hops=hops, device=model_device(raw_models(models)))
        profiled = profile_models(models, question.graph(), labels=question.labels)
        return answer_question(profiled, question, **options)


def question_about(models: Sequence[AnyModel], data: Any, masks: BoolArray, nodes: IntArray | None) -> Question:
    """The question about masks [M, n] and some nodes, or all of them, where the models are."""
    asked = torch.arange(int(data.num_nodes)) if nodes is None else torch.from_numpy(nodes)
    return ask(data, torch.from_numpy(masks), asked, device=model_device(raw_models(models)))


def answer_question(
    models: Sequence[Profiled], question: Question, *, engine: EngineName | str = "auto", memory: int | None = None
) -> Toggles:
    """`toggle_answers` behind the door: nothing is checked or profiled again."""
    shape = (2, len(models), len(question.masks), len(question.nodes))
    answer = torch.empty(shape, dtype=torch.float64, device=question.x.device)
    if answer.numel() and engine == "reference":
        answer = torch.stack(tuple(reference_toggles(models, question)))
    elif answer.numel():
        budget = default_memory(question.x.device) if memory is None else memory
        with open_memory(), evaluation_mode(models):
            for numbers, stack in stacks_of(models, question):
                chosen = _chosen(stack, question, engine=engine)
                answer[:, numbers] = answer_in_blocks(chosen, stack, question, memory=budget).to(answer.device)
    found = Toggles(*answer)
    if not bool(torch.isfinite(found.signal).all()):  # looked at where the answers lie
        signal, names = found.signal.movedim(2, 1).cpu().numpy(), question.nodes.cpu().numpy().astype(str)
        for number, one in enumerate(signal):
            check_finite(one, names, place=f"models[{number}], asked about parts of the graph")
    return found


def engine_names(models: Sequence[Profiled], question: Question) -> list[str]:
    """The engine that ``toggle_losses`` takes for each group of models of one shape."""
    with evaluation_mode(models):
        return [_chosen(stack, question, engine="auto") for _, stack in stacks_of(models, question)]


def toggle_seconds(models: Sequence[Profiled], question: Question, *, engine: EngineName | str = "auto") -> float:
    """About how long a question takes in this process, as its engines predict it; nothing is asked."""
    with evaluation_mode(models):
        stacks = [stack for _, stack in stacks_of(models, question)]
        return sum(question_seconds(_chosen(some, question, engine=engine), some, question) for some in stacks)


def _chosen(models: Stack, question: Question, *, engine: str) -> str:
    """The engine that is predicted to be fastest, among those that are allowed and support the models."""
    known = engines()
    if engine in known:
        chosen = [engine]
    elif engine in ("auto", "toggle"):
        chosen = [name for name in known if engine == "auto" or name != "packed"]
    else:
        raise InputError(f"engine: {engine!r} is not known. Use auto, toggle, reference or one of {', '.join(known)}.")
    able = [
        name
        for name in chosen
        if models.once((name, question.hops), lambda name=name: known[name].supports(models, question))  # type: ignore[misc]
    ]
    if able:
        return min(able, key=lambda name: known[name].seconds(models, question)) if len(able) > 1 else able[0]
    raise InputError(
        f"engine: {engine!r} cannot toggle {type(models[0].model).__name__} row by row. "
        'Use "auto", which asks it as a black box.'
    )


_ENTRIES = 1 << 24  # of masks that stand for an attack's work: where there are more, every engine is worth its start


def settled_engine(models: Sequence[Profiled], question: Question, *, work: int, least: int = 1) -> str:
    """The engine that all of the models get in an attack of so much work; ``"auto"`` if they get several.

    One question alone might seem not to be worth compiling for.

    Args:
        models: those that are asked.
        question: about some of the training sets.
        work: how many pairs of a model and a training set the attack asks about, of all its targets.
        least: how many training sets the largest question has.
    """
    count = round(work / MODELS_PER_AUDIT)  # an audit of usual size with so many masks is as much work
    count = max(least, min(count, _ENTRIES // max(question.size, 1)))
    place = torch.arange(count, device=question.masks.device) % len(question.masks)
    names = set(engine_names(models, replace(question, masks=question.masks[place])))
    return names.pop() if len(names) == 1 else "auto"


_TRIPLES = 8
CHECKED_MASKS = 8  # as G-BASE draws by default; the choice of an engine depends on their number
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


class Answered(NamedTuple):
    """What an attack asks its target about, and what the fast engine says."""

    masks: BoolArray  # [M, n]
    signals: FloatArray  # [models, M, nodes]


def check_engine(
    models: Sequence[Profiled],
    data: Data,
    *,
    nodes: IntArray,
    share: float,
    seed: int,
    answered: Answered | None = None,
) -> EngineCheck:
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
        answered: what an attack of the audit uses itself, which need not be asked for again.
    """
    source = generator(seed, "engine check")
    drawn = source.random((CHECKED_MASKS, int(data.num_nodes))) < share
    masks = drawn if answered is None else answered.masks
    work = len(masks) * len(models) ** 2  # as `Scene.engine_for` has it
    found: list[float] = []
    with open_memory():
        question = question_about(models, data, masks, nodes)
        settled = settled_engine(models, question, work=work, least=len(masks))
        groups = stacks_of(models, question)
        names = engine_names(models, question) if settled == "auto" else [settled] * len(groups)
        for name, (numbers, group) in zip(names, groups, strict=True):
            known = None if answered is None else answered.signals[numbers]
            found += _differences(name, group, question, known, count=max(2, _TRIPLES // len(groups)), source=source)
    largest = float(np.max(found))
    if not largest <= tolerance("engine"):
        raise InputError(
            f"model: the fast engine differs from the rule as written by {largest:.2g} on some nodes of this audit, "
            f'so its scores would be wrong. Use {{"name": "g-base", "engine": "reference"}}, which is slow, and report '
            f"this fault."
        )
    return EngineCheck(len(found), largest, tuple(dict.fromkeys(names)))


def _differences(
    name: str, models: Stack, question: Question, known: FloatArray | None, *, count: int, source: np.random.Generator
) -> list[float]:
    """How far about ``count`` signals of one block are from the rule, each as a share of S, or of 1 if S is smaller.

    The signals [models, masks, nodes] of the whole question may be known.
    """
    blocks, _ = blocks_of(name, models, question)
    masks, nodes = (slice(*part) for part in blocks[source.integers(len(blocks))])
    block = dataclasses.replace(question, masks=question.masks[masks], nodes=question.nodes[nodes])
    again = source.permutation(len(block.nodes))[:_AGAIN]
    other = dataclasses.replace(block, nodes=block.nodes[torch.from_numpy(again).to(block.nodes.device)])
    fast = _signals(name, models, block) if known is None else known[:, masks, nodes]  # [models, masks, nodes]
    moved = _signals(name, models, other)
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
