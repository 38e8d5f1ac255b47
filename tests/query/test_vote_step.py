from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from glasshouse.core.numerics import loss_to_margin
from glasshouse.data.named import load_dataset
from glasshouse.query.vote_step import (
    ShareFinder,
    Shares,
    StepFinder,
    clipped_log_probabilities,
    clipped_losses,
    common_resolution,
    resolution_note,
    whole_shares,
)

DIGITS = load_dataset("digits").population


def step_of(*batches: np.ndarray) -> float | None:
    finder = StepFinder()
    for batch in batches:
        finder.add(batch)
    return finder.resolution()


@pytest.mark.parametrize(
    ("estimator", "step"),
    [
        (RandomForestClassifier(25, random_state=0), 1 / 25),
        (ExtraTreesClassifier(40, random_state=0), 1 / 40),
        (KNeighborsClassifier(5), 1 / 5),
        (KNeighborsClassifier(1), 1.0),
        (DecisionTreeClassifier(random_state=0), 1.0),
        (BaggingClassifier(DecisionTreeClassifier(), n_estimators=12, random_state=0), 1 / 12),
        (LogisticRegression(C=10, max_iter=2000), None),
        (CalibratedClassifierCV(LinearSVC(), cv=2), None),
        (GaussianNB(), None),  # it gives exact zeros, but only below 1e-300
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_step_of_an_estimator_is_found_in_its_answers(estimator: object, step: float | None) -> None:
    model = estimator.fit(DIGITS.x[:300], DIGITS.y[:300])  # type: ignore[attr-defined]
    answers = model.predict_proba(DIGITS.x)
    assert step_of(answers) == (step if step is None else pytest.approx(step))
    assert step_of(*np.array_split(answers, 7)) == step_of(answers)  # batches do not change it


@given(st.integers(1, 500), st.integers(2, 6), st.integers(0, 2**32 - 1), st.sampled_from([np.float64, np.float32]))
def test_the_step_of_votes_is_one_vote_whatever_rounding_leaves_over(
    voters: int, classes: int, seed: int, kind: type[np.floating]
) -> None:
    votes = np.random.default_rng(seed).multinomial(voters, np.full(classes, 1 / classes), size=200)
    votes[0] = np.eye(classes)[0] * voters
    if voters > 1:
        votes[1] = np.eye(classes)[0] * (voters - 1) + np.eye(classes)[1]
    answers = (votes / voters).astype(kind)
    assert step_of(answers) == pytest.approx(1 / voters, rel=1e-6)
    if kind is np.float64:  # the last class by what is left of 1, as wrappers do it: 2e-16 in place of 0
        answers[:, -1] = np.clip(1 - answers[:, :-1].sum(axis=1), 0, 1)
        assert step_of(answers) == pytest.approx(1 / voters, rel=1e-6)


@given(st.integers(0, 2**32 - 1), st.floats(0.5, 60), st.sampled_from([np.float64, np.float32]))
def test_softmax_has_no_steps_however_sure_it_is(seed: int, scale: float, kind: type[np.floating]) -> None:
    logits = (np.random.default_rng(seed).normal(size=(400, 4)) * scale).astype(kind)
    rows = np.exp(logits - logits.max(axis=1, keepdims=True))
    assert step_of((rows / rows.sum(axis=1, keepdims=True)).astype(kind)) is None


def test_a_class_that_a_model_never_saw_is_no_step() -> None:
    assert step_of(np.array([[0.3, 0.7, 0.0], [0.2, 0.8, 0.0]])) is None


def test_rounded_probabilities_have_the_step_of_their_last_digit() -> None:
    sure = np.random.default_rng(0).beta(0.05, 0.05, size=2000)
    assert step_of(np.stack([sure, 1 - sure], axis=1).round(3)) == pytest.approx(0.001)


def test_one_step_for_target_and_shadow_models_is_the_coarser() -> None:
    assert common_resolution(0.01, [0.1, 0.1, 0.1]) == 0.1
    assert common_resolution(0.1, [0.01, None]) == 0.1
    assert common_resolution(None, [0.01, 0.02, 0.01]) == 0.01  # one forest never gave its smallest step
    assert common_resolution(None, [None, None]) is None


@given(st.floats(1e-12, 1.0), st.floats(0.5, 3.0))
def test_both_tails_are_clipped_alike(step: float, temperature: float) -> None:
    margins = loss_to_margin(clipped_losses(np.array([1e-60, 400.0]), step, temperature=temperature))
    clip = min(step / 2, 0.25)
    assert margins[0] == pytest.approx(-margins[1], rel=1e-6)
    assert margins[0] * temperature == pytest.approx(np.log((1 - clip) / clip), rel=1e-6)


def test_without_steps_nothing_is_touched() -> None:
    loss = np.array([0.0, 50.0])
    assert clipped_losses(loss, None) is loss
    assert clipped_log_probabilities(loss, None) is loss
    assert resolution_note(None) == ()


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (0.01, "nothing closer to them than 0.01, so confidences are clipped to between 0.005 and 0.995."),
        (1.0, "nothing between them, so confidences are clipped to between 0.25 and 0.75."),
        (1 / 30, "nothing closer to them than 0.0333, so confidences are clipped to between 0.0167 and 0.9833."),
        (1e-4, "nothing closer to them than 0.0001, so confidences are clipped to between 0.00005 and 0.99995."),
    ],
)
def test_the_note_says_what_was_found_and_done(step: float, said: str) -> None:
    assert resolution_note(step)[0].endswith(said)


def seen(answers: np.ndarray, *, batch: int = 7) -> Shares | None:
    finder = ShareFinder()
    for start in range(0, len(answers), batch):
        finder.add(answers[start : start + batch])
    return finder.found()


def the_top(rows: np.ndarray, k: int) -> np.ndarray:
    return np.where(rows >= np.sort(rows, axis=1)[:, -k][:, None], rows, 0.0)


@given(st.integers(3, 30), st.integers(1, 3), st.integers(0, 2**20), st.floats(0.05, 5.0))
def test_rounded_probabilities_are_known_as_such_whatever_the_model(
    classes: int, digits: int, seed: int, spread: float
) -> None:
    """In float32 as in float64; where all sums happen to be 1, they are probabilities as they are."""
    rows = np.random.default_rng(seed).dirichlet(np.full(classes, spread), size=40).round(digits)
    for kind in (np.float64, np.float32):
        if np.abs(rows.sum(axis=1) - 1).max() > 2e-3:
            found = seen(rows.astype(kind))
            assert found is not None
            if found.kind == "rounded":
                assert found.step == pytest.approx(10.0**-digits)


@given(st.integers(3, 30), st.integers(0, 2**20), st.floats(0.1, 5.0), st.data())
def test_what_the_likeliest_classes_lack_is_shared_by_the_others(
    classes: int, seed: int, spread: float, data: st.DataObject
) -> None:
    rows = np.random.default_rng(seed).dirichlet(np.full(classes, spread), size=60)
    k = data.draw(st.integers(1, classes - 1))
    cut = the_top(rows, k)
    listed = cut > 0
    if (1 - cut.sum(axis=1)).max() > 2e-3 and listed.any(axis=0).sum() > k:
        assert seen(cut) == Shares("top", 0.0)
        whole = whole_shares(cut, Shares("top", 0.0))
        np.testing.assert_allclose(whole.sum(axis=1), 1)
        np.testing.assert_allclose(whole[listed], cut[listed], rtol=1e-9)
        assert (whole.max(axis=1, where=~listed, initial=0) <= cut.min(axis=1, where=listed, initial=1) + 1e-12).all()


@pytest.mark.parametrize("digits", [16, 2, 1])
def test_logits_sigmoids_and_other_numbers_between_0_and_1_are_no_cut_probabilities(digits: int) -> None:
    random = np.random.default_rng(3)
    logits = random.normal(size=(400, 5))
    sigmoids = 1 / (1 + np.exp(-logits))
    others = {
        "logits": logits,
        "small logits": random.random((400, 5)),
        "a sigmoid per class": sigmoids,
        "a sure sigmoid per class": 1 / (1 + np.exp(-3 * logits + 3)),
        "sigmoids above a limit": np.where(sigmoids > 0.5, sigmoids, 0.0),
        "weak scores of the largest": the_top(0.2 * sigmoids, 2),
        "several labels": (logits > 0.5).astype(float),
    }
    assert {name: seen(rows.round(digits)) for name, rows in others.items()} == dict.fromkeys(others)


def test_few_rows_and_a_class_that_no_row_has_show_nothing() -> None:
    rows = np.random.default_rng(0).dirichlet(np.ones(4), size=40)
    assert seen(rows.round(2)[:7]) is None
    assert seen(rows) is None
    assert seen(np.where(rows < 0.1, 1e-310, rows)) is None  # naive Bayes has answers as small as that
    without = np.concatenate([0.99 * (0.2 + 0.2 * rows), np.zeros((40, 1))], axis=1)  # and a class never seen
    assert seen(without) is None


def test_a_row_that_lists_nothing_says_nothing() -> None:
    for kind in ("rounded", "top"):
        whole = whole_shares(np.array([[0.0, 0.0, 0.0, 0.0], [0.5, 0.2, 0.0, 0.0]]), Shares(kind, 0.01))
        np.testing.assert_allclose(whole[0], 0.25)
        np.testing.assert_allclose(whole.sum(axis=1), 1)
