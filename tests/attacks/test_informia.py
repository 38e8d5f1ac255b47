from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given

from glasshouse import Evidence, InputError
from glasshouse.attacks import BASE, InfoRMIA
from glasshouse.evidence import Mode
from tests.strategies import gaussian_evidence, random_evidence


def written_out(evidence: Evidence, *, mode: Mode, a: float, over: str) -> list[float]:
    """Record by record, with the divergence summed over both outcomes, or over all records."""
    own, usual = np.exp(-evidence.target_loss), []
    for v in range(evidence.records):
        asked = np.ones(evidence.models, bool) if mode == "online" else ~evidence.shadow_members[:, v]
        mean = np.exp(-evidence.shadow_loss[asked, v]).mean()
        usual.append(mean if mode == "online" else 0.5 * ((1 + a) * mean + 1 - a))
    scores = []
    for v in range(evidence.records):
        if over == "answers":
            outcomes = [(usual[v], own[v]), (1 - usual[v], 1 - own[v])]
            apart = sum(p * np.log(p / q) for p, q in outcomes)
        else:
            shares = np.array(usual) / sum(usual)
            apart = sum(shares[z] * np.log(usual[z] / own[z]) for z in range(evidence.records))
        scores.append(np.log(own[v] / usual[v]) + apart)
    return scores


@pytest.mark.parametrize("over", ["answers", "population"])
@pytest.mark.parametrize(("mode", "a"), [("online", 1.0), ("offline", 0.3)])
def test_it_is_the_formula_written_out(mode: Mode, a: float, over: Literal["answers", "population"]) -> None:
    evidence, _ = gaussian_evidence(records=40, models=6, shift=1.0, seed=0)
    scores = InfoRMIA(mode=mode, offline_a=a, over=over).score(evidence)
    assert scores == pytest.approx(written_out(evidence, mode=mode, a=a, over=over), abs=1e-9)


def test_over_the_population_the_order_is_that_of_base() -> None:
    evidence, _ = gaussian_evidence(records=200, models=6, shift=1.0, seed=1)
    assert (np.argsort(InfoRMIA(over="population").score(evidence)) == np.argsort(BASE().score(evidence))).all()


@pytest.mark.parametrize("over", ["answers", "population"])
@given(random_evidence())
def test_scores_are_finite_whatever_the_losses(over: Literal["answers", "population"], evidence: Evidence) -> None:
    assert np.isfinite(InfoRMIA(over=over).score(evidence)).all()


def test_its_parameters_are_checked() -> None:
    with pytest.raises(InputError, match="over"):
        InfoRMIA(over="classes")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="offline_a"):
        InfoRMIA(offline_a=2.0)
