from __future__ import annotations

from decimal import Decimal, getcontext

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import logsumexp

from glasshouse.core.outputs import losses_from_logits, tensor_losses


def test_losses_equal_cross_entropy() -> None:
    logits, labels = torch.randn(20, 4, generator=torch.Generator().manual_seed(0)), torch.arange(20) % 4
    torch.testing.assert_close(
        tensor_losses(logits, labels), torch.nn.functional.cross_entropy(logits.double(), labels, reduction="none")
    )


def test_a_confident_prediction_keeps_its_digits() -> None:
    loss = tensor_losses(torch.tensor([[60.0, 0.0]]), torch.tensor([0]))
    torch.testing.assert_close(-torch.expm1(loss).log(), torch.tensor([60.0], dtype=torch.float64))


def test_one_class_has_no_loss() -> None:
    assert tensor_losses(torch.tensor([[3.0]]), torch.tensor([0])).item() == 0.0


@given(st.floats(-700, 700))
def test_losses_keep_their_digits_at_any_confidence(margin: float) -> None:
    """Against forty-digit arithmetic."""
    getcontext().prec = 400
    exact = (1 + Decimal(-margin).exp()).ln()
    loss = losses_from_logits([[margin, 0.0]], np.array([0]))[0]
    assert loss == pytest.approx(float(exact), rel=1e-13)
    tensor = tensor_losses(torch.tensor([[margin, 0.0]], dtype=torch.float64), torch.tensor([0])).item()
    assert tensor == pytest.approx(float(exact), rel=1e-13)


@given(hnp.arrays(np.float64, (5, 4), elements=st.floats(-50, 50)), st.floats(0.1, 10))
def test_temperature_divides_the_logits(logits: np.ndarray, temperature: float) -> None:
    labels = np.array([0, 1, 2, 3, 0])
    expected = logsumexp(logits / temperature, axis=1) - logits[np.arange(5), labels] / temperature
    found = losses_from_logits(logits, labels, temperature=temperature)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
