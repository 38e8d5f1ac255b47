from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.core.arrays import FloatArray
from glasshouse.graph.rule.two_layers import gat
from tests.graph.rule.two_layers.plain_kernels import in_python

KERNELS = in_python(gat)
HEADS, WIDTH, SLOPE, NODES = 2, 3, 0.2, 5


def written(random: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Values [nodes, heads, width], scores [nodes, source or target, heads] and the messages made of them."""
    values, scores = random.normal(size=(NODES, HEADS, WIDTH)), random.normal(scale=3, size=(NODES, 2, HEADS))
    messages = np.zeros((NODES, gat.PARTS, HEADS * (WIDTH + 1)))
    level = scores[:, 0].max(axis=0)
    for node in range(NODES):
        flat = values.reshape(NODES, -1), scores.reshape(NODES, -1)
        KERNELS.write_message(*flat, node, level, SLOPE, messages, node)
    return values, scores, messages


def weighed(values: FloatArray, scores: FloatArray, receiver: int, senders: list[int]) -> FloatArray:
    """What attention gives by its definition: the softmax of the leaky sums of scores, [heads, width]."""
    total = scores[senders, 0] + scores[receiver, 1]
    weight = np.exp(np.where(total > 0, total, SLOPE * total))
    return np.asarray(np.einsum("sh,shw->hw", weight / weight.sum(axis=0), values[senders]))


def mean(out: FloatArray) -> FloatArray:
    """The weighted sums by the sums of weights, which stand last in each head."""
    heads = out[0].reshape(HEADS, WIDTH + 1)
    return np.asarray(heads[:, :-1] / heads[:, -1:])


@given(seed=st.integers(0, 1000), receiver=st.integers(0, NODES - 1))
def test_sums_of_messages_are_softmax_attention(seed: int, receiver: int) -> None:
    values, scores, messages = written(np.random.default_rng(seed))
    out = np.zeros((1, HEADS * (WIDTH + 1)))
    for sender in range(NODES):
        KERNELS.add_message(out, messages, receiver, messages, sender)
    np.testing.assert_allclose(mean(out), weighed(values, scores, receiver, list(range(NODES))), rtol=1e-9)


@given(seed=st.integers(0, 1000))
def test_a_message_that_is_taken_or_replaced_leaves_the_sum_of_the_others(seed: int) -> None:
    values, scores, messages = written(np.random.default_rng(seed))
    out = np.zeros((1, HEADS * (WIDTH + 1)))
    for sender in (0, 1, 2):
        KERNELS.add_message(out, messages, 4, messages, sender)
    KERNELS.replace_message(out, messages, 4, messages, 2, messages, 3)
    np.testing.assert_allclose(mean(out), weighed(values, scores, 4, [0, 1, 3]), rtol=1e-6, atol=1e-9)
    before = out.copy()
    KERNELS.add_message(out, messages, 4, messages, 2)
    KERNELS.take_message(out, messages, 4, messages, 2)
    np.testing.assert_allclose(out, before, rtol=1e-9, atol=1e-9)


def test_a_sum_that_lost_most_of_its_weight_has_too_few_digits_left() -> None:
    kept, changed = np.ones((1, 2 * (WIDTH + 1))), np.ones((1, 2 * (WIDTH + 1)))
    assert not KERNELS.cancels(kept, 0, changed, 2, gat.QUARTER)
    changed[0, -1] = 0.2
    assert KERNELS.cancels(kept, 0, changed, 2, gat.QUARTER)
