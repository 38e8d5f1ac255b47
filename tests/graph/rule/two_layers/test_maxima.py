from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.core.arrays import F32
from glasshouse.graph.rule.two_layers import sage
from glasshouse.graph.rule.two_layers.graph import CSR
from tests.graph.rule.two_layers.plain_kernels import in_python

KERNELS = in_python(sage)
WIDTH = 4
SEEDS = st.integers(0, 5000)


def drawn(random: np.random.Generator, rows: int) -> F32:
    """Values after a ReLU with many ties and zeros."""
    return random.integers(0, 4, (rows, WIDTH)).astype(np.float32)


def two_largest(values: F32) -> tuple[F32, F32]:
    """[1, width] each; a value that is not there is a 0."""
    ordered = np.sort(np.concatenate([np.zeros((2, WIDTH), np.float32), values]), axis=0)
    return ordered[-1:], ordered[-2:-1]


@given(seed=SEEDS, size=st.integers(3, 14), inside=st.booleans(), with_v=st.booleans())
def test_values_that_come_go_or_change_move_the_maximum_as_a_fresh_look_does(
    seed: int, size: int, inside: bool, with_v: bool
) -> None:
    """Row 0 sees all nodes but v, the last, which it sees where it is a member and a neighbour."""
    random = np.random.default_rng(seed)
    x, v = 0, size - 1
    neighbours = [*range(1, v), v] if inside and with_v else list(range(1, v))
    near = random.permutation(np.arange(1, v))[: random.integers(1, v)]
    before, after = drawn(random, size), drawn(random, size)
    changed = np.zeros(size, np.bool_)
    moved = np.flatnonzero(random.random(len(near)) < random.choice([0.0, 0.2, 0.6]))  # often none, or one
    changed[moved] = True
    slot = np.full(size, -1, np.int32)
    slot[near] = np.arange(len(near))
    slot[v] = -2
    own = before[v : v + 1].copy()
    top, second = two_largest(before[neighbours])
    graph = CSR(
        start=np.array([0, len(neighbours)]),
        columns=np.array(neighbours, np.int32),
        degree=np.array([len(neighbours)], np.int32),
        member=np.array([True] * v + [inside]),
        label=np.zeros(size, np.int32),
    )
    reach = SimpleNamespace(nodes=near, slot=slot, size=np.array([len(near)]))
    scratch = SimpleNamespace(
        delta=np.zeros((4, WIDTH), np.float32), after=after, own=own, moved=moved, changed=changed, reach=reach
    )
    KERNELS.replace_several(with_v, v, x, len(moved), graph, top, second, before, scratch)
    fresh = {w: before[w] for w in range(1, v)} | {int(near[k]): after[k] for k in moved}
    if with_v and not inside:
        fresh[v] = own[0]
    expected = two_largest(np.stack(list(fresh.values())))[0] - top
    assert (scratch.delta[:1] == expected).all()
