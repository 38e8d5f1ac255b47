"""From toggled logits to signals: eq. (6) over the rows of a ball, and its first part, the own loss."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.balls import Rings
from glasshouse.graph.rule.toggle.row_losses import row_losses
from glasshouse.graph.rule.toggle.segments import segment_sum, starts_of

__all__ = ["Ends"]


@dataclass(frozen=True, kw_only=True)
class Ends:
    """What turns logits into signals: labels [N], kept losses [N, models] and the number of classes.

    Example:
        >>> Ends.of(torch.tensor([0, 1]), torch.zeros(2, 3, 4)).kept_loss.shape
        torch.Size([2, 3])
    """

    labels: Tensor
    kept_loss: Tensor
    classes: int

    @classmethod
    def of(cls, labels: Tensor, logits: Tensor) -> Ends:
        """From the labels [N] and the kept logits [N, models, classes]."""
        loss = row_losses(logits, _safe(labels, logits))
        return cls(labels=labels, kept_loss=loss, classes=int(logits.shape[-1]))

    def signals(self, logits: Tensor, rings: Rings, *, outer: int) -> Tensor:
        """Eq. (6) and own losses from the toggled logits [rows, models, classes] of a ball, [targets, 2, models]."""
        ball = rings.balls[outer]
        after = row_losses(logits, _safe(self.labels[ball.node], logits))
        removed = rings.removes.unsqueeze(1)
        own = torch.where(removed, self.kept_loss[rings.targets], after[ball.centre])  # loss_v(in)
        change = after - self.kept_loss[ball.node]
        change[ball.centre] = 0
        total = segment_sum(change, starts_of(ball.target, len(rings.targets)))
        return torch.stack([own + torch.where(removed, -total, total), own], dim=1)


def _safe(labels: Tensor, logits: Tensor) -> Tensor:
    """Labels that index the logits; those of nodes that are never summed may be missing."""
    return labels.clamp(0, logits.shape[-1] - 1)
