"""Metropolis-Hastings chains that walk in step: one forward pass of all models under the proposals of all chains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.arrays import BoolArray, FloatArray, IntArray
from glasshouse.graph.models.asking import manners_of
from glasshouse.graph.models.model import Model
from glasshouse.graph.rule.question import ask, check_width
from glasshouse.graph.rule.toggle.batching import by_shape
from glasshouse.graph.rule.toggle.kept_program import program_logits
from glasshouse.graph.rule.toggle.lowering import lower
from glasshouse.graph.rule.toggle.masked_graph import coalesced, mask_graph
from glasshouse.graph.rule.toggle.plan import default_memory, make_plan
from glasshouse.graph.rule.toggle.signals import Ends
from glasshouse.graph.rule.toggle.stages import place
from glasshouse.graph.sampling.chains.proposal import Block

__all__ = ["Crowd", "masked_losses", "walk_in_step"]

MaskedLosses = Callable[[Tensor], Tensor]  # masks [chains, n] -> losses [chains, n, models]


def walk_in_step(models: Sequence[Model], data: Data) -> bool:
    """Whether forward passes of all chains at once are the way: for models with programs, on a GPU.

    Example:
        >>> walk_in_step([torch.nn.Linear(1, 1)], Data(x=torch.zeros(1, 1)))
        False
    """
    return bool(data.x.is_cuda) and all(manners_of(model).program is not None for model in models)


def masked_losses(models: Sequence[Model], data: Data) -> MaskedLosses:
    """A function from masks [chains, n] to losses [chains, n, models] of all nodes; only members' have a meaning.

    Example:
        >>> from glasshouse.graph.models.asking import meet
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> pair = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> models = [build_gnn("gcn", features=2, hidden=4, classes=2) for _ in range(3)]
        >>> meet(models, pair)
        >>> masked_losses(models, pair)(torch.ones(5, 2, dtype=torch.bool)).shape
        torch.Size([5, 2, 3])
    """
    groups = [(places, _of_one_shape([models[place] for place in places], data)) for places in by_shape(models)]

    def answer(masks: Tensor) -> Tensor:
        found = torch.empty(*masks.shape, len(models), dtype=torch.float64, device=masks.device)
        for places, losses in groups:
            found[..., places] = losses(masks)
        return found

    return answer


def _of_one_shape(models: Sequence[Model], data: Data) -> MaskedLosses:
    question = ask(data, torch.ones(1, int(data.num_nodes), dtype=torch.bool), torch.arange(0))
    placed = place(lower(models, question), radius=None)
    dtype = placed[-1].operation.result.sample.dtype
    edges = coalesced(question.edge_index, question.size, dtype)
    x = question.x.to(dtype) if question.x.is_floating_point() else question.x  # whole numbers may be codes
    costs, memory = [one.cost() for one in placed], default_memory(question.x.device)
    plan = make_plan(costs, question, models=1, memory=memory)  # these are the costs of all models

    def under(masks: Tensor) -> Tensor:
        logits = program_logits(placed, x, mask_graph(edges, masks), limit=plan.temporary)
        logits = check_width(logits, question).expand(-1, len(models), -1)
        losses = Ends.of(question.labels.repeat(len(masks)), logits).kept_loss
        return losses.reshape(*masks.shape, len(models)).double()

    return lambda masks: torch.cat([under(some) for some in masks.split(plan.masks)])


@dataclass(kw_only=True)
class Crowd:
    """Several chains at their current masks; everything stays on the models' device.

    Args:
        answer: losses under masks, the target's first.
        masks: where the chains are, bool [chains, n].
        prior_logit: [n]; infinite where a node is never flipped.
        asked: bool [n, shadow models], which of them may speak about which node; without rows: all about all.
    """

    answer: MaskedLosses
    masks: Tensor
    prior_logit: Tensor
    asked: Tensor

    def __post_init__(self) -> None:
        self.value = self._value(self.masks)

    @classmethod
    def begin(
        cls, answer: MaskedLosses, masks: BoolArray, *, logits: FloatArray, asked: BoolArray, on: torch.device
    ) -> Crowd:
        """From arrays: masks [chains, n], logits [n], and asked [n, shadow models], or without rows."""
        begun, prior, heard = (torch.from_numpy(part).to(on) for part in (masks, logits, asked))
        return cls(answer=answer, masks=begun, prior_logit=prior, asked=heard)

    def steps(self, blocks: Sequence[Block]) -> IntArray:
        """Take the proposals of one block per chain, side by side; how many each chain accepted."""
        device = self.masks.device
        taken = torch.zeros(len(blocks), dtype=torch.int64, device=device)
        bars = torch.from_numpy(np.stack([block.log_uniform for block in blocks])).to(device)
        for step in range(bars.shape[1]):
            sets = [block.nodes[block.start[step] : block.start[step + 1]] for block in blocks]
            chain = torch.from_numpy(np.repeat(np.arange(len(sets)), [len(nodes) for nodes in sets])).to(device)
            node = torch.from_numpy(np.concatenate(sets)).to(device)
            leaves, logit = self.masks[chain, node], self.prior_logit[node]
            change = torch.zeros_like(self.value).index_add_(0, chain, torch.where(leaves, -logit, logit))
            proposed = self.masks.clone()
            proposed[chain, node] = ~leaves
            value = self._value(proposed)
            accepts = bars[:, step] < change + value - self.value
            self.masks = torch.where(accepts[:, None], proposed, self.masks)
            self.value = torch.where(accepts, value, self.value)
            taken += accepts
        counts: IntArray = taken.cpu().numpy()
        return counts

    def _value(self, masks: Tensor) -> Tensor:
        """The log ratio of each chain at these masks, without the prior, [chains]."""
        losses = self.answer(masks)
        if len(self.asked):
            shadows = (-losses[..., 1:]).masked_fill(~self.asked, -torch.inf)
            ratios = -losses[..., 0] - shadows.logsumexp(-1) + self.asked.sum(-1).log()
            return ratios.masked_fill(~masks, 0.0).sum(-1)
        totals = losses.masked_fill(~masks[..., None], 0.0).sum(1)
        return -totals[:, 0] - (-totals[:, 1:]).logsumexp(-1) + float(np.log(totals.shape[1] - 1))
