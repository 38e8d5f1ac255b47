"""Random inputs that know the ugly cases: ties, one record, two models, losses near 0 and near 700."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from glasshouse import Evidence
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.data import complementary_halves

UGLY_LOSSES = [0.0, 5e-324, 1e-300, 1e-12, 0.5, float(np.log(2.0)), 3.0, 20.0, 690.0, 710.0]

PAPER = ("base", "lira", "rmia")  # quick attacks, for tests that are not about the attacks


def losses() -> st.SearchStrategy[float]:
    return st.one_of(st.sampled_from(UGLY_LOSSES), st.floats(0.0, 30.0))


@st.composite
def random_evidence(draw: st.DrawFn, *, min_records: int = 1, min_models: int = 2) -> Evidence:
    records = draw(st.integers(min_records, 12))
    models = 2 * draw(st.integers(min_models // 2, 4))
    members = complementary_halves(records, models=models, seed=draw(st.integers(0, 10)))
    values = draw(hnp.arrays(np.float64, (models + 1, records), elements=losses()))
    return Evidence(target_loss=values[0], shadow_loss=values[1:], shadow_members=members)


@st.composite
def scores_and_members(draw: st.DrawFn) -> tuple[FloatArray, BoolArray]:
    """Heavily tied scores, both kinds of record present."""
    count = draw(st.integers(2, 40))
    scores = draw(hnp.arrays(np.float64, count, elements=st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, 1e300])))
    members = draw(hnp.arrays(np.bool_, count))
    members[0], members[-1] = True, False
    return scores, members


def gaussian_evidence(
    *, records: int, models: int, shift: float, seed: int, difficulty: float = 1.0
) -> tuple[Evidence, BoolArray]:
    """Evidence whose margins are N(μ_v + shift·member, 1), where the best attack is known; and the target's members."""
    random = np.random.default_rng(seed)
    members = complementary_halves(records, models=models + 2, seed=seed)
    usual = random.normal(0.0, difficulty, records)
    margins = usual + shift * members + random.normal(size=members.shape)
    loss = np.logaddexp(0.0, -margins)
    evidence = Evidence(target_loss=loss[-1], shadow_loss=loss[:-2], shadow_members=members[:-2])
    return evidence, members[-1]
