from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from glasshouse.errors import InputError
from glasshouse.graph.rule import self_check
from glasshouse.graph.rule.reference import reference_losses
from glasshouse.graph.rule.self_check import check_engine
from tests.graph.random_graphs import random_models
from tests.graph.simple_graphs import simple_graph

DATA = simple_graph(size=12, edges=20, seed=0)
MODELS = random_models("gin", layers=2, count=3, dtype=torch.float32)


def test_an_engine_that_follows_the_rule_passes_with_few_nodes_too() -> None:
    found = check_engine(MODELS, DATA, nodes=np.arange(12), share=0.5, seed=0)
    assert found.triples == 8
    assert found.largest < 1e-4
    assert found.engines == ("layered",)
    assert check_engine(MODELS, DATA, nodes=np.array([3]), share=0.5, seed=0).triples == 2


@pytest.mark.parametrize("fault", [0.01, float("nan")])
def test_an_engine_that_errs_is_refused(fault: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: Any, engine: str) -> torch.Tensor:
        return reference_losses(*given) * (1 + fault) + fault

    monkeypatch.setattr(self_check, "toggle_losses", wrong)
    with pytest.raises(InputError, match="differs from the rule as written"):
        check_engine(MODELS, DATA, nodes=np.arange(12), share=0.5, seed=0)


def test_the_engine_of_a_large_pool_is_the_one_that_is_checked() -> None:
    """With so many models it is worth compiling."""
    models = random_models("gcn", layers=2, count=3, dtype=torch.float32)
    found = [check_engine(models * many, DATA, nodes=np.arange(12), share=0.5, seed=0).engines for many in (1, 2000)]
    assert found == [("layered",), ("compiled",)]
