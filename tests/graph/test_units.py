"""An audit of a graph by unit: several nodes belong to one person."""

from __future__ import annotations

import numpy as np
import pytest

from glasshouse.core.errors import InputError
from glasshouse.graph import GNNTrainer, audit, citation_graph


def test_nodes_of_one_person_are_drawn_and_judged_together() -> None:
    data, person = citation_graph(nodes=120, classes=3), np.arange(120) // 2
    trainer = GNNTrainer(hidden=8, epochs=10, device="cpu")
    result = audit(data, trainer=trainer, attacks=["base", "g-base"], shadows=4, unit=person, progress=False)
    assert result.records().height == 60
    assert result.rows().height == 120
    assert result.privacy is not None
    assert result.privacy.unit == "person"
    view = result.by_unit
    assert view is not None
    for members in view.rows.shadow_members:
        view.units.members(members, place="shadow model")  # refuses who is partly inside


def test_a_sample_of_nodes_that_would_split_units_is_refused() -> None:
    with pytest.raises(InputError, match="would split units"):
        audit(citation_graph(nodes=120, classes=3), nodes=30, unit=np.arange(120) // 2)
