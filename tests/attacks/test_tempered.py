from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, log_softmax

from glasshouse import InputError
from glasshouse.attacks import BASE, TemperedBASE
from glasshouse.attacks.base import RATIOS, TEMPERATURES
from glasshouse.evaluation import auc
from glasshouse.evidence import Evidence, Mode

MODES: tuple[Mode, ...] = ("online", "offline")


def leaky(*, seed: int = 0, records: int = 300, models: int = 8) -> tuple[Evidence, np.ndarray]:
    """Answers of three classes that are sharper for members, whatever the class; and who trained the target."""
    random = np.random.default_rng(seed)
    half = np.stack([random.permutation(records) < records // 2 for _ in range(models // 2)])
    members = np.stack([half, ~half], axis=1).reshape(models, records)
    truth = random.permutation(records) < records // 2
    labels, usual = random.integers(0, 3, records), random.normal(size=(records, 3))
    sharper = 1.0 + 1.0 * np.concatenate([truth[None], members])[:, :, None]
    logits = sharper * (usual + 0.3 * random.normal(size=(1 + models, records, 3)))
    loss = -np.take_along_axis(log_softmax(logits, axis=2), np.broadcast_to(labels[None, :, None], (9, records, 1)), 2)
    evidence = Evidence(
        target_loss=loss[0, :, 0],
        shadow_loss=loss[1:, :, 0],
        shadow_members=members,
        labels=labels,
        target_logits=logits[0],
        shadow_logits=logits[1:],
    )
    return evidence, truth


@pytest.mark.parametrize("mode", MODES)
def test_with_temperature_1_and_no_ratio_it_is_base(mode: Mode) -> None:
    evidence, _ = leaky()
    scores = TemperedBASE(mode=mode, prior=0.3, temperature=1.0, ratio=0.0).score(evidence)
    np.testing.assert_allclose(expit(scores), BASE(mode=mode, prior=0.3, scale=1.0).score(evidence), atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_its_formula_written_out_record_by_record(mode: Mode) -> None:
    evidence, _ = leaky()
    assert evidence.target_logits is not None
    assert evidence.shadow_logits is not None
    scores = TemperedBASE(mode=mode, temperature=2.0, ratio=0.7).score(evidence)
    for record in range(0, 300, 37):
        used = [k for k in range(8) if mode == "online" or not evidence.shadow_members[k, record]]
        shares = [
            np.exp(one) / np.exp(one).sum()
            for one in (evidence.target_logits[record], *evidence.shadow_logits[used, record])
        ]
        certain = [float((share * np.log(share)).sum()) for share in shares]
        expected = np.log(np.mean(np.exp(-evidence.shadow_loss[used, record] / 2)))
        odds = -evidence.target_loss[record] / 2 - expected + 0.7 * (certain[0] - np.mean(certain[1:]))
        assert scores[record] == pytest.approx(odds, abs=1e-9)


def test_both_numbers_are_the_best_on_simulated_targets_and_find_more_than_base() -> None:
    evidence, truth = leaky()
    attack = TemperedBASE().tuned(evidence)
    areas = {
        (temperature, ratio): np.mean(
            [
                auc(TemperedBASE(temperature=temperature, ratio=ratio).score(target.view), target.members)
                for target in evidence.simulated()
            ]
        )
        for temperature in TEMPERATURES
        for ratio in RATIOS
    }
    assert areas[float(attack.temperature), float(attack.ratio)] == pytest.approx(max(areas.values()))
    assert attack.tuned(evidence) is attack
    assert auc(attack.score(evidence), truth) > auc(BASE().score(evidence), truth) + 0.05
    assert TemperedBASE(ratio=0.0).tuned(evidence).ratio == 0.0


def test_where_nothing_is_known_it_stays_base() -> None:
    flat = np.zeros((5, 20, 2))
    half = np.arange(20) < 10
    evidence = Evidence(
        target_loss=np.ones(20),
        shadow_loss=np.ones((4, 20)),
        shadow_members=np.stack([half, ~half] * 2),
        target_logits=flat[0],
        shadow_logits=flat[1:],
    )
    attack = TemperedBASE().tuned(evidence)
    assert (attack.temperature, attack.ratio) == (1.0, 0.0)


def test_a_class_that_is_never_answered_adds_nothing() -> None:
    evidence, _ = leaky()
    assert evidence.target_logits is not None
    assert evidence.shadow_logits is not None
    impossible = np.full((9, 300, 1), -np.inf)
    more = Evidence(
        target_loss=evidence.target_loss,
        shadow_loss=evidence.shadow_loss,
        shadow_members=evidence.shadow_members,
        labels=evidence.labels,
        target_logits=np.concatenate([evidence.target_logits, impossible[0]], axis=1),
        shadow_logits=np.concatenate([evidence.shadow_logits, impossible[1:]], axis=2),
    )
    attack = TemperedBASE(temperature=1.5, ratio=1.0)
    np.testing.assert_allclose(attack.score(more), attack.score(evidence), atol=1e-12)


def test_losses_alone_and_wrong_numbers_are_refused() -> None:
    evidence, _ = leaky()
    with pytest.raises(InputError, match="the evidence holds only losses"):
        TemperedBASE().score(evidence.losses_alone())
    with pytest.raises(InputError, match="temperature: 0 is not positive"):
        TemperedBASE(temperature=0)
    with pytest.raises(InputError, match="ratio: nan is not a number"):
        TemperedBASE(ratio=float("nan"))
