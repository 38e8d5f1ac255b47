"""Parts of the targets on several cores give the bits of one core."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from glasshouse.graph import citation_graph, toggle_losses
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule.incremental.engine import are_safe, in_turns
from glasshouse.graph.rule.incremental.program import changed_balls, lower
from glasshouse.graph.rule.question import ask
from tests.graph.random_graphs import random_models
from tests.graph.zoo import Differences

DATA = citation_graph(nodes=200)


@contextlib.contextmanager
def cores(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    yield
    torch.set_num_threads(before)


def by_each_number_of_cores(models: list[Any], data: Data, masks: torch.Tensor, *, memory: int) -> None:
    """Every fourth node; what else is asked, here by one core, would have two wait for each other."""
    nodes = torch.arange(0, 200, 4)
    with cores(1):
        known = profile_models(models, data)
        right = toggle_losses(known, data, masks, nodes[:3], engine="reference")
    found = []
    for count in (1, 2):
        with cores(count):
            found.append(toggle_losses(known, data, masks, nodes, engine="layered", memory=memory))
    torch.testing.assert_close(found[0][:, :, :3], right, atol=1e-9, rtol=1e-9)
    assert torch.equal(*found)


@pytest.mark.parametrize("architecture", ["gcn", "gat"])
def test_the_signals_do_not_depend_on_the_number_of_cores(architecture: str) -> None:
    """GCN in balls, GAT outward; little memory makes many parts."""
    data = DATA.clone()
    data.x = data.x[:, :5].double()
    data.y = data.y % 3
    masks = torch.rand(2, 200, generator=torch.Generator().manual_seed(0)) < 0.5
    by_each_number_of_cores(random_models(architecture, layers=2), data, masks, memory=2**18)


class Forgetful(Differences):
    """It keeps what it works on in itself: right only if nobody else calls it meanwhile."""

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        self.kept = x
        made = super().forward(x, edge_index)
        time.sleep(0.001)  # another thread may run now
        return made + self.kept.sum(dim=1, keepdim=True)


def test_threads_never_share_a_layer_that_keeps_a_state() -> None:
    """Each has its own copy; the numbers are those of the rule, and the bits those of one core."""
    data = DATA.clone()
    data.x, data.y = data.x[:, :5].double(), data.y % 3
    torch.manual_seed(0)
    models = [Forgetful(5, 3).double().eval() for _ in range(2)]
    by_each_number_of_cores(models, data, torch.rand(2, 200) < 0.5, memory=2**16)


def test_a_layer_that_cannot_be_copied_stays_on_one_core() -> None:
    """A known layer of a user is read once and not called; one of unknown type is called, by each thread its own."""
    question = ask(DATA, torch.ones(1, 200, dtype=torch.bool), torch.tensor([0]))
    features = DATA.x.shape[1]
    locked, hooked = Differences(features, 7), Differences(features, 7)
    locked.lock = threading.Lock()
    hooked.register_forward_hook(lambda layer, given, made: made)
    safe, others = [GCNConv(features, 7), Differences(features, 7)], [locked, hooked]
    for model in (*safe, *others):
        known = profile_models([model.eval()], DATA)
        with torch.no_grad():
            assert are_safe(changed_balls(lower(known, question), radius=1)) is (model in safe)


@pytest.mark.parametrize("threads", [1, 2])
def test_parts_keep_their_order(threads: int) -> None:
    parts = [slice(k, k + 3) for k in range(0, 30, 3)]
    with cores(threads):
        found = in_turns(lambda part: torch.arange(30)[part], parts, device=torch.device("cpu"), threads=True)
    assert torch.equal(found, torch.arange(30))
