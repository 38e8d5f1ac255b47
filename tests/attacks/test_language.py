"""Attacks on language models without shadow models, on texts worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from glasshouse import Evidence, InputError
from glasshouse.attacks import EZMIA, Attack, LossThreshold, MinK, MinKPlusPlus, WindowComparison, Zlib
from glasshouse.evidence import PartLosses

# two texts of three and two tokens; of the target: losses, those of the reference, and the rest by hand
LOSS = -np.log(np.array([0.5, 0.1, 0.2, 0.9, 0.05]))
REFERENCE = -np.log(np.array([0.4, 0.2, 0.05, 0.9, 0.1]))
DETAILS = {
    "reference": REFERENCE[None],
    "right": np.array([[1, 0, 0, 1, 0], [0, 0, 0, 0, 0]]),
    "mean": np.array([[-1.0, -2.0, -1.5, -0.5, -2.0]] * 2),
    "spread": np.array([[1.0, 0.5, 1.0, 0.5, 2.0]] * 2),
    "compressed": np.array([[20, 0, 0, 10, 0]]),
}


def texts(**details: np.ndarray) -> Evidence:
    told = {name: values.astype(np.float32) for name, values in (details or DETAILS).items()}
    parts = PartLosses(
        target=LOSS.astype(np.float32),
        shadow=REFERENCE.astype(np.float32)[None],
        offsets=np.array([0, 3, 5]),
        details=told,
    )
    sums = [LOSS[:3].sum(), LOSS[3:].sum()]
    return Evidence(target_loss=sums, shadow_loss=[sums], shadow_members=[[1, 0]], parts=parts)


@pytest.mark.parametrize(
    ("attack", "by_hand"),
    [
        (MinK(share=0.4), [np.log(0.1), np.log(0.05)]),  # one token of each
        (MinK(share=0.7), [(np.log(0.1) + np.log(0.2)) / 2, np.log(0.05)]),
        (
            MinKPlusPlus(share=1.0),
            [
                ((np.log(0.5) + 1) / 1 + (np.log(0.1) + 2) / 0.5 + (np.log(0.2) + 1.5) / 1) / 3,
                ((np.log(0.9) + 0.5) / 0.5 + (np.log(0.05) + 2) / 2) / 2,
            ],
        ),
        # the third token is four times as likely as before, the second half as likely; in the other text only the fifth
        # changed, to half
        (EZMIA(), [np.log(4) / np.log(2), 0.0]),
        # of width 1: the first and the third token of the first text beat the reference; of width 2: the last two
        (WindowComparison(widths=(1,)), [2 / 3, 0.0]),
        (WindowComparison(widths=(1, 2)), [(2 / 3 + 1 / 2) / 2, 0.0]),
        (WindowComparison(widths=(1, 3)), [(2 / 3 + 1) / 2, 0.0]),  # the second text is too short for width 3
        # the loss of a whole text, and the logarithm of its perplexity
        (LossThreshold(), [np.log(0.5 * 0.1 * 0.2), np.log(0.9 * 0.05)]),
        (MinK(share=1.0), [np.log(0.5 * 0.1 * 0.2) / 3, np.log(0.9 * 0.05) / 2]),
        (Zlib(), [np.log(0.5 * 0.1 * 0.2) / 3 / 20, np.log(0.9 * 0.05) / 2 / 10]),
    ],
)
def test_scores_worked_out_by_hand(attack: Attack, by_hand: list[float]) -> None:
    assert np.allclose(attack.score(texts()), by_hand, atol=1e-5)


def test_a_shadow_model_in_the_targets_place_has_its_own_details() -> None:
    view = texts().among(np.empty((0, 1), dtype=np.intp), model=0)
    every = EZMIA().score(view)  # it is wrong about every token, and is its own reference
    assert np.allclose(every, 0)
    assert np.allclose(MinK(share=1.0).score(view), [-REFERENCE[:3].mean(), -REFERENCE[3:].mean()])


def test_what_is_not_there_is_asked_for() -> None:
    with pytest.raises(InputError, match="looks at 'mean' of each part; pass loss=TokenLoss"):
        MinKPlusPlus().score(texts(reference=REFERENCE[None]))
    with pytest.raises(InputError, match="parts of records, such as tokens, and there are none: pass loss=TokenLoss"):
        Zlib().score(Evidence(target_loss=[0.1], shadow_loss=[[0.1]], shadow_members=[[1]]))
