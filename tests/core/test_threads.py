"""Blocks and threads change no bit of a score."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from glasshouse.attacks import BASE, RMIA, LiRA, Regressed
from glasshouse.core.numerics import loss_to_margin
from glasshouse.core.threads import ONE_CORE, cached_blocks, in_threads, over_records, side_by_side
from glasshouse.data import random_subsets
from glasshouse.evaluation.leakage import _drawn_flags, leak_test
from glasshouse.evidence import Evidence
from tests.strategies import gaussian_evidence


def test_every_record_is_handled_once_whatever_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for records, models in ((1, 1), (700, 64), (100_000, 3)):
        handled = np.zeros(records, dtype=int)

        def count(some: slice, handled: np.ndarray = handled) -> None:
            handled[some] += 1

        over_records(count, records, models=models)
        assert (handled == 1).all()
    monkeypatch.setattr("glasshouse.core.threads._MANY", 2)
    assert side_by_side(lambda value: value + 1, [1, 2, 3], records=10) == [2, 3, 4]
    assert [(some.start, some.stop) for some in cached_blocks(5, models=1 << 30)] == [(0, 5)]


@pytest.mark.parametrize("attack", [BASE(), RMIA(), LiRA(), LiRA(variance="record"), BASE(mode="offline"), Regressed()])
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("width", [64, 5])
def test_scores_are_the_same_bytes_with_threads_and_small_blocks(
    attack: BASE | RMIA | LiRA | Regressed, paired: bool, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glasshouse.attacks.in_out_moments._WIDTH", width)
    evidence, _ = gaussian_evidence(records=300, models=24, shift=1.0, seed=3)
    if not paired:
        drawn = random_subsets(300, models=24, fraction=0.5, seed=0)
        evidence = Evidence(target_loss=evidence.target_loss, shadow_loss=evidence.shadow_loss, shadow_members=drawn)

    def everything() -> list[bytes]:
        sets = [np.arange(20)[:, None], np.arange(4, 24)[:, None]]
        simulated = [scores.tobytes() for scores, _ in attack.simulated_scores(evidence)]
        among = [b"" if scores is None else scores.tobytes() for scores in attack.scores_among(evidence, sets)]
        return [attack.score(evidence).tobytes(), *simulated, *among]

    whole = everything()
    monkeypatch.setattr("glasshouse.core.threads._MANY", 100)
    monkeypatch.setattr("glasshouse.core.threads._FEWEST", 7)
    monkeypatch.setattr("glasshouse.core.threads._VALUES", 64)
    assert everything() == whole


@pytest.mark.parametrize("attack", [BASE(), RMIA(gamma=1.5), LiRA(), LiRA(variance="record")])
def test_scores_beside_some_models_are_those_of_a_pool_of_these_models(attack: BASE | RMIA | LiRA) -> None:
    evidence, _ = gaussian_evidence(records=300, models=10, shift=1.0, seed=4)
    sets = [np.delete(np.arange(10), [2 * pair, 2 * pair + 1])[:, None] for pair in range(5)]
    for found, rows in zip(attack.scores_among(evidence, sets), sets, strict=True):
        assert found is not None
        np.testing.assert_allclose(found, attack.score(evidence.among(rows)), rtol=1e-12, atol=1e-12)


def test_a_set_that_is_too_small_is_skipped_and_the_others_are_scored() -> None:
    evidence, _ = gaussian_evidence(records=50, models=8, shift=1.0, seed=5)
    sets = [np.arange(8)[:, None], np.arange(2)[:, None]]
    whole, small = LiRA(variance="record").scores_among(evidence, sets)
    assert whole is not None
    assert small is None


def test_margins_keep_their_order_in_memory() -> None:
    losses = np.random.default_rng(0).exponential(size=(30, 40))
    for given in (losses, np.asfortranarray(losses), losses[::2], losses[:, 3:17]):
        found = loss_to_margin(given)
        assert (found == [[loss_to_margin(np.array(one)) for one in row] for row in given]).all()
        assert found.flags.f_contiguous == (given.flags.f_contiguous and not given.flags.c_contiguous)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_drawn_flags_are_as_many_as_members_and_no_record_is_favoured(share: float) -> None:
    members = np.arange(50) < round(50 * share)
    flags = _drawn_flags(members, 4000, np.random.default_rng(0))
    assert (flags.sum(axis=1) == members.sum()).all()
    expected, error = members.mean(), np.sqrt(members.mean() * (1 - members.mean()) / 4000)
    assert np.abs(flags.mean(axis=0) - expected).max() < 5 * error
    together = (flags[:, 0] & flags[:, 1]).mean()  # drawn without replacement, two are together a little more rarely
    assert together == pytest.approx(expected * (members.sum() - 1) / 49, abs=5 * error)


def test_the_leak_test_says_the_same_with_flags_that_are_drawn_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    members = random.random(400) < 0.5
    scores = {"weak": random.normal(size=400) + 0.12 * members}
    shuffled = leak_test(scores, members, fprs=[0.05])
    monkeypatch.setattr("glasshouse.evaluation.leakage._SHUFFLED", 1)
    drawn = leak_test(scores, members, fprs=[0.05])
    assert drawn.p_value == pytest.approx(shuffled.p_value, abs=0.05)
    assert (drawn.permutations, drawn.attack, drawn.figure) == (shuffled.permutations, "weak", shuffled.figure)
    monkeypatch.setattr("glasshouse.core.threads._MANY", 1)
    assert leak_test(scores, members, fprs=[0.05]) == drawn


def test_work_is_done_in_order_also_within_work_and_where_no_thread_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nested(value: int) -> list[int]:
        return in_threads(lambda other: value * other, range(3), jobs=3)

    wanted = [nested(value) for value in range(20)]
    assert in_threads(nested, range(20), jobs=4) == wanted
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda value: 1 // value, [1, 0, 2], jobs=2)

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert in_threads(nested, range(20), jobs=4) == wanted


def test_products_stay_on_one_core_until_the_last_of_several_threads_has_left() -> None:
    """Each thread for itself would put back the number of threads that it had found, while others still count on 1."""

    def counts() -> set[int]:
        return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}

    entered, left = threading.Event(), threading.Event()

    def first() -> None:
        with ONE_CORE:
            entered.set()
            assert left.wait(20)

    with threadpool_limits(2, user_api="blas"):
        if counts() != {2}:
            pytest.skip("the BLAS of this machine has one thread")
        other = threading.Thread(target=first)
        other.start()
        assert entered.wait(20)
        with ONE_CORE:
            left.set()
            other.join()
            assert counts() == {1}
        assert counts() == {2}
