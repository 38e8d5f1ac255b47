from __future__ import annotations

import numpy as np

from glasshouse.graph.attacks.stacking.features import SampledAnswers
from glasshouse.graph.attacks.stacking.learn import matched_plain, matched_samples, plain_likeness, plain_unlikeness
from glasshouse.graph.attacks.stacking.pool_signals import PlainAnswers


def test_a_much_surer_target_is_noticed_and_matched() -> None:
    random = np.random.default_rng(0)
    usual = np.logaddexp(0.0, -random.normal(size=(4, 800)))
    sure = np.logaddexp(0.0, -random.normal(6.0, 3.0, size=(1, 800)))
    like = plain_likeness(PlainAnswers(usual, usual))
    unlike = PlainAnswers(sure, sure)
    assert plain_unlikeness(like, unlike) > 10
    assert plain_unlikeness(like, matched_plain(like, unlike)) < 2


def test_signals_keep_their_order_and_take_the_scale_of_simulated_targets() -> None:
    random = np.random.default_rng(0)
    usual = [
        SampledAnswers(own := random.exponential(size=(1, 2, 500)), own - random.normal(size=own.shape)) for _ in "1234"
    ]
    own = 5 * random.exponential(size=(1, 2, 500))
    other = SampledAnswers(own, own - random.normal(3.0, 4.0, size=own.shape))
    matched = matched_samples(other, usual)
    gains = matched.own - matched.signal
    assert abs(gains.mean()) < 0.1
    assert abs(gains.std() - 1) < 0.1
    assert np.corrcoef(gains.ravel(), (other.own - other.signal).ravel())[0, 1] > 0.95
