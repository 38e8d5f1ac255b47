from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from glasshouse import Evidence
from glasshouse.attacks import Calibration
from tests.strategies import random_evidence


@given(random_evidence())
def test_the_usual_loss_is_taken_off_record_by_record(evidence: Evidence) -> None:
    online, offline = (Calibration(mode=mode).score(evidence) for mode in ("online", "offline"))
    for v in range(evidence.records):
        column, outside = evidence.shadow_loss[:, v], ~evidence.shadow_members[:, v]
        assert online[v] == pytest.approx(np.mean(column) - evidence.target_loss[v])
        assert offline[v] == pytest.approx(np.mean(column[outside]) - evidence.target_loss[v])
