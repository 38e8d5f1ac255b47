from __future__ import annotations

import torch

from glasshouse.graph.models.losses import losses


def test_losses_equal_cross_entropy() -> None:
    logits, labels = torch.randn(20, 4, generator=torch.Generator().manual_seed(0)), torch.arange(20) % 4
    torch.testing.assert_close(
        losses(logits, labels), torch.nn.functional.cross_entropy(logits.double(), labels, reduction="none")
    )


def test_a_confident_prediction_keeps_its_digits() -> None:
    loss = losses(torch.tensor([[60.0, 0.0]]), torch.tensor([0]))
    torch.testing.assert_close(-torch.expm1(loss).log(), torch.tensor([60.0], dtype=torch.float64))


def test_one_class_has_no_loss() -> None:
    assert losses(torch.tensor([[3.0]]), torch.tensor([0])).item() == 0.0
