from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from glasshouse.evaluation import GaussianBound, PrivacyClaim, PrivacyVerdict, roc
from glasshouse.report.html import picture_style
from glasshouse.report.pictures.axes import Axis
from glasshouse.report.pictures.privacy import epsilon_picture, fdp_picture
from glasshouse.report.pictures.scores import curve_of, histogram_of, histogram_picture, roc_picture


def test_the_same_curves_give_the_same_picture_and_hostile_names_stay_text() -> None:
    random = np.random.default_rng(0)
    members = np.arange(300) < 150
    curves = {name: curve_of(roc(random.normal(size=300) + members, members)) for name in ("base", "<lira>")}
    first, second = (roc_picture(curves, style=picture_style()) for _ in range(2))
    assert first == second
    assert "&lt;lira&gt;" in first
    assert "<lira>" not in first
    assert "<script" not in first
    ElementTree.fromstring(first)  # noqa: S314 (our own text)


def test_rates_are_drawn_as_steps_never_as_slopes() -> None:
    curve = curve_of(roc([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0]))
    drawing = ElementTree.fromstring(roc_picture({"base": curve}))  # noqa: S314
    paths = [part.get("d", "") for part in drawing.iter() if part.get("class", "").startswith("curve")]
    drawn = [path for path in paths if "H" in path]  # the other is the legend's
    assert drawn
    assert all("L" not in path for path in drawn)


@pytest.mark.parametrize("members", [1, 2, 7, 100])
def test_small_samples_have_a_picture(members: int) -> None:
    scores = np.arange(members + 1.0)
    truth = np.arange(members + 1) > 0
    assert roc_picture({"a": curve_of(roc(scores, truth))}).startswith("<svg")
    assert histogram_picture("a", histogram_of(scores, truth), threshold=0.5).startswith("<svg")


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 100.0])
@pytest.mark.parametrize("claim", [None, PrivacyClaim(epsilon=0.0), PrivacyClaim(epsilon=8.0, delta=1e-5)])
def test_epsilon_and_its_claim_are_said_in_the_picture(epsilon: float, claim: PrivacyClaim | None) -> None:
    drawn = epsilon_picture(PrivacyVerdict(claim=claim, pure=epsilon, epsilon=epsilon))
    assert (f"ε ≥ {epsilon:.2f}" in drawn) is (epsilon > 0)
    assert ("not a guarantee" in drawn) is (epsilon == 0)  # "ε ≥ 0.00" would read as perfect
    assert ("claimed" in drawn) is (claim is not None)


def test_ticks_are_round_and_inside() -> None:
    assert [text for _, text in Axis(0.0005, 1.0, log=True, percent=True).ticks()] == ["0.1 %", "1 %", "10 %", "100 %"]
    assert [text for _, text in Axis(0.05, 1.0, log=True, percent=True).ticks()] == [
        "5 %", "10 %", "20 %", "50 %", "100 %",
    ]  # fmt: skip
    assert [value for value, _ in Axis(-3.0, 7.0).ticks()] == [-2.5, 0.0, 2.5, 5.0]


@pytest.mark.parametrize("claim", [None, PrivacyClaim(epsilon=8.0, delta=1e-5)])
def test_the_trade_off_shows_chance_the_attack_and_what_is_known_of_privacy(claim: PrivacyClaim | None) -> None:
    measured = curve_of(roc(np.arange(50.0), np.arange(50) > 20))
    empty = fdp_picture(PrivacyVerdict(claim=claim), "base", measured)
    assert "chance" in empty
    assert "μ =" not in empty
    assert ("claimed" in empty) is (claim is not None)
    shown = PrivacyVerdict(claim=claim, gaussian=GaussianBound(0.5, 1.9), independent=GaussianBound(0.8, 3.4))
    full = fdp_picture(shown, "base", measured)
    assert "μ = 0.50, any records" in full
    assert "μ = 0.80, independent" in full
