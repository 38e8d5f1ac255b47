from __future__ import annotations

import functools
import gc
import weakref
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from glasshouse.graph.models.calls import with_edges
from glasshouse.graph.models.networks import build_gnn
from glasshouse.graph.models.tensor_cache import Memory, on_device, open_memory, remembered
from glasshouse.graph.rule.question import ask
from glasshouse.graph.rule.toggling import toggle_losses
from tests.graph.simple_graphs import simple_graph

ELSEWHERE = torch.device("meta")


@pytest.fixture(autouse=True)
def memory() -> Iterator[Memory]:
    """A memory that is open, as during an audit."""
    kept = Memory()
    with kept.open():
        yield kept


def test_a_graph_is_sent_to_a_device_once_however_often_it_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    data, sent, plain = simple_graph(size=9, edges=14, seed=0), Counter[int](), Tensor.to
    data.edge_weight = torch.ones(data.edge_index.shape[1])

    def counting(tensor: Tensor, *given: object, **named: object) -> Tensor:
        if ELSEWHERE in given:
            sent[id(tensor)] += 1
        return plain(tensor, *given, **named)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(Tensor, "to", counting)
    for _ in range(5):
        graph = with_edges(data, device=ELSEWHERE)
        assert all(value.device == ELSEWHERE for value in (graph.x, graph.edge_index, graph.edge_weight))
    assert len(sent) == 3
    assert set(sent.values()) == {1}


def test_copies_of_a_graph_that_share_its_tensors_share_what_is_on_the_device() -> None:
    data = simple_graph(size=9, edges=14, seed=0)
    assert with_edges(data, device=ELSEWHERE).x is with_edges(with_edges(data), device=ELSEWHERE).x


def test_what_was_written_to_is_sent_again() -> None:
    x = torch.zeros(3)
    before = on_device(x, ELSEWHERE)
    x[0] = 1
    assert on_device(x, ELSEWHERE) is not before
    assert remembered(x, "sum", lambda: float(x.sum())) == 1
    x[1] = 1
    assert remembered(x, "sum", lambda: float(x.sum())) == 2


def test_what_is_remembered_goes_with_the_tensor() -> None:
    x, kept = torch.zeros(3), np.zeros(1)
    gone = weakref.ref(kept)
    remembered(x, "array", functools.partial(np.asarray, kept))
    del kept
    assert gone() is not None
    del x
    gc.collect()
    assert gone() is None


def test_questions_share_the_tensors_of_their_graph() -> None:
    data = simple_graph(size=9, edges=14, seed=0)
    mask, nodes = torch.ones(1, 9, dtype=torch.bool), torch.arange(9)
    first, second = ask(data, mask, nodes), ask(data, ~mask, nodes)
    assert first.x is second.x is data.x
    assert first.edge_index is second.edge_index


def test_a_tensor_whose_writes_are_not_counted_is_not_remembered(memory: Memory) -> None:
    with torch.inference_mode():
        x = torch.zeros(3)
        assert remembered(x, "sum", lambda: float(x.sum())) == 0
        x += 1
        assert remembered(x, "sum", lambda: float(x.sum())) == 3
    assert x not in memory.known


def test_what_numpy_writes_between_two_calls_is_seen() -> None:
    """The writes are not counted by the tensor, so nothing outlives a call, or the scene that keeps a memory."""
    values = np.zeros(3, dtype=np.float32)
    x = torch.from_numpy(values)
    other = Memory()
    found = []
    for kept in (Memory(), other, other):
        with kept.open(), open_memory():  # the inner one uses the memory that is open
            found.append(remembered(x, "sum", lambda: float(x.sum())))
        values += 1
    assert found == [0, 3, 3]  # one scene goes on with what it knows


def test_two_calls_on_an_array_that_was_changed_between_them_ask_about_the_changed_graph(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("glasshouse.graph.models.tensor_cache._OPEN", [])  # no audit
    data = simple_graph(size=9, edges=14, seed=0)
    edges = data.edge_index.numpy()
    mask, nodes = torch.ones(1, 9, dtype=torch.bool), torch.arange(9)
    model = build_gnn("gcn", features=data.x.shape[1], hidden=4, classes=int(data.y.max()) + 1).eval()
    for _ in range(2):
        found = toggle_losses([model], data, mask, nodes)
        right = toggle_losses([model], data, mask, nodes, engine="reference")
        torch.testing.assert_close(found, right, atol=1e-5, rtol=1e-5)
        edges[:, :4] = edges[:, 4:8]
