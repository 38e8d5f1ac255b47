from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.graph.training.setting import fit_ratios, looks_transductive

LABELS = torch.arange(8) % 2
DATA = Data(x=torch.nn.functional.one_hot(LABELS, 2).float(), edge_index=torch.tensor([[0, 1], [1, 0]]), y=LABELS)
MEMBERS = np.arange(16).reshape(2, 8) % 3 > 0


class Fits:
    """Sure of its answers on graphs of some sizes, and unsure on all others."""

    def __init__(self, *sizes: int, sure: float = 4.0) -> None:
        self.sizes, self.sure = sizes, sure

    def __call__(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x * (self.sure if len(x) in self.sizes else 1.0)


def looks(*models: Fits) -> bool:
    return looks_transductive(fit_ratios(models, DATA, MEMBERS[: len(models)]))


def test_models_that_fit_the_whole_graph_best_were_trained_on_it() -> None:
    assert looks(Fits(8), Fits(8))
    assert fit_ratios([Fits(8)], DATA, MEMBERS[:1])[0] < 0.1


def test_models_that_fit_their_members_alone_or_both_alike_were_not() -> None:
    sizes = MEMBERS.sum(axis=1).tolist()
    assert not looks(*(Fits(size) for size in sizes))
    assert not looks(*(Fits(8, size) for size in sizes))
    assert not looks(Fits(8), Fits(0)), "one model that does not is enough"


def test_losses_near_zero_unlabelled_members_and_no_models_say_nothing() -> None:
    assert not looks(Fits(8, sure=1e5), Fits(8, *MEMBERS.sum(axis=1).tolist(), sure=20))
    assert not looks()
    unlabelled = DATA.clone()
    unlabelled.y = torch.where(torch.from_numpy(MEMBERS[0]), -1, DATA.y)
    assert fit_ratios([Fits(8)], unlabelled, MEMBERS[:1]).tolist() == [1.0]


def test_how_low_a_ratio_is_depends_on_those_of_models_that_are_known_to_be_inductive() -> None:
    """Short training leaves ratios near 1 in both settings; long training moves them far apart."""
    known = np.array([1.3, 1.5])
    assert not looks_transductive(np.array([0.85]))
    assert looks_transductive(np.array([0.85]), inductive=known)
    assert not looks_transductive(np.array([1.05]), inductive=3 * known), "it fits its members' own graph best"
    assert not looks_transductive(np.array([0.65]), inductive=known / 2), "as inductive ones of this trainer do"
    assert looks_transductive(np.array([0.4]), inductive=known / 2)
