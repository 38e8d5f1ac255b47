from __future__ import annotations

import numpy as np
import pytest

from glasshouse import InputError
from glasshouse.evidence.tables import outputs_to_losses

IDS = np.array(["a", "b"])


def test_shadow_models_with_other_classes_are_refused() -> None:
    with pytest.raises(InputError, match="2 classes, but the target has 3"):
        outputs_to_losses("logits", np.zeros((2, 3)), np.zeros((1, 2, 2)), np.array([0, 1]), IDS)


def test_one_label_too_few_is_refused() -> None:
    with pytest.raises(InputError, match="give one label per record"):
        outputs_to_losses("logits", np.zeros((2, 3)), np.zeros((1, 2, 3)), np.array([0]), IDS)


VOTES = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.3, 0.7]])
NAMES = np.array(["a", "b", "c", "d"])


@pytest.mark.parametrize("given", [VOTES, VOTES[:, 1]], ids=["two columns", "one column"])
def test_saved_votes_are_clipped_half_a_vote_from_certainty(given: np.ndarray) -> None:
    found = outputs_to_losses("probabilities", given, given[None], np.zeros(4), NAMES)
    np.testing.assert_allclose(np.exp(-found["target_loss"]), [0.95, 0.9, 0.05, 0.3])
    np.testing.assert_allclose(found["shadow_loss"][0], found["target_loss"])
    assert found["notes"][0].endswith("clipped to between 0.05 and 0.95.")


def test_losses_of_exactly_zero_are_no_certainty() -> None:
    """Losses of votes, as a user would save them: 0 where all agree, a large number where none does."""
    loss = -np.log(np.clip(VOTES[:, 0], 1e-15, 1))
    found = outputs_to_losses("loss", loss, loss[None], None, NAMES)
    np.testing.assert_allclose(np.exp(-found["target_loss"]), [0.95, 0.9, 0.05, 0.3])
    smooth = np.array([1e-9, 0.1, 30.0, 0.5])
    assert (outputs_to_losses("loss", smooth, smooth[None], None, NAMES)["target_loss"] == smooth).all()


def test_saved_probabilities_without_steps_stay_as_they_are() -> None:
    smooth = np.array([[1 - 1e-9, 1e-9], [0.4, 0.6], [1e-5, 1 - 1e-5], [0.5, 0.5]])
    found = outputs_to_losses("probabilities", smooth, smooth[None], np.zeros(4), NAMES)
    np.testing.assert_allclose(found["target_loss"], -np.log(smooth[:, 0]), rtol=1e-6)
    assert found["notes"] == ()
