from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.graph.training.setting import looks_transductive

LABELS = torch.arange(8) % 2
DATA = Data(x=torch.nn.functional.one_hot(LABELS, 2).float(), edge_index=torch.tensor([[0, 1], [1, 0]]), y=LABELS)
MEMBERS = np.arange(16).reshape(2, 8) % 3 > 0


class Fits:
    """Sure of its answers on graphs of some sizes, and unsure on all others."""

    def __init__(self, *sizes: int, sure: float = 4.0) -> None:
        self.sizes, self.sure = sizes, sure

    def __call__(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x * (self.sure if len(x) in self.sizes else 1.0)


def test_models_that_fit_the_whole_graph_best_were_trained_on_it() -> None:
    assert looks_transductive([Fits(8), Fits(8)], DATA, MEMBERS)


def test_models_that_fit_their_members_alone_or_both_alike_were_not() -> None:
    sizes = MEMBERS.sum(axis=1).tolist()
    assert not looks_transductive([Fits(size) for size in sizes], DATA, MEMBERS)
    assert not looks_transductive([Fits(8, size) for size in sizes], DATA, MEMBERS)
    assert not looks_transductive([Fits(8), Fits(0)], DATA, MEMBERS), "one model that does not is enough"


def test_losses_near_zero_and_no_models_say_nothing() -> None:
    assert not looks_transductive([Fits(8, sure=1e5), lambda x, edges: 20 * x], DATA, MEMBERS)
    assert not looks_transductive([], DATA, MEMBERS[:0])
