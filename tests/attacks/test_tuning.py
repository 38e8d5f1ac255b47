from __future__ import annotations

import numpy as np
import pytest

from glasshouse import Evidence
from glasshouse.attacks.tuning import Statistic, best_share
from glasshouse.evaluation import auc
from tests.strategies import gaussian_evidence


def statistic_of(evidence: Evidence) -> Statistic:
    usual = evidence.shadow_loss.mean(axis=0)
    return lambda share: -evidence.target_loss + share * usual


def test_the_best_of_all_hundredths_is_found() -> None:
    evidence, _ = gaussian_evidence(records=600, models=6, shift=1.0, seed=3, difficulty=2.0)

    def quality(share: float) -> float:
        simulated = evidence.simulated()
        return float(np.mean([auc(statistic_of(one.view)(share), one.members) for one in simulated]))

    brute = max(quality(share) for share in np.arange(0, 1.005, 0.01))
    found = best_share(evidence, statistic_of, name="share")
    assert quality(found) == pytest.approx(brute, abs=2e-4)
