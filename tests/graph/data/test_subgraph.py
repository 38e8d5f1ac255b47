from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given

from glasshouse.core.errors import InputError
from glasshouse.graph.data.population import induced
from tests.graph.random_graphs import Case, random_cases
from tests.graph.simple_graphs import simple_graph


@given(case=random_cases(masks=1))
def test_nodes_are_numbered_anew_and_the_edges_between_them_stay(case: Case) -> None:
    chosen = case.masks[0].clone()
    chosen[0] = True
    found = induced(case.data, chosen.numpy())
    old = chosen.nonzero().squeeze(1).tolist()
    kept = [(a, b) for a, b in case.data.edge_index.T.tolist() if chosen[a] and chosen[b]]
    assert [(old[a], old[b]) for a, b in found.edge_index.T.tolist()] == kept
    assert torch.equal(found.x, case.data.x[chosen].float())
    assert torch.equal(found.y, case.data.y[chosen])
    assert found.edge_weight is found.edge_attr is None


@given(case=random_cases(masks=1))
def test_edges_keep_their_own_values(case: Case) -> None:
    data, chosen = case.data.clone(), case.masks[0].clone()
    chosen[0] = True
    data.edge_weight = torch.arange(data.num_edges)
    data.edge_attr = torch.rand(data.num_edges, 2, dtype=torch.float64)
    found, theirs = induced(data, chosen.numpy()), data.subgraph(chosen)
    assert found.edge_weight is not None
    assert found.edge_attr is not None
    assert torch.equal(found.edge_weight, theirs.edge_weight.float())
    assert torch.equal(found.edge_attr, theirs.edge_attr.float())


def test_a_mask_of_another_length_is_refused() -> None:
    with pytest.raises(InputError):
        induced(simple_graph(size=4, edges=4, seed=0), np.ones(99, np.bool_))
