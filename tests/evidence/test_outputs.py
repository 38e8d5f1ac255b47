from __future__ import annotations

import numpy as np
import pytest

from glasshouse import InputError
from glasshouse.evidence.outputs import outputs_to_losses

IDS = np.array(["a", "b"])


def test_shadow_models_with_other_classes_are_refused() -> None:
    with pytest.raises(InputError, match="2 classes, but the target has 3"):
        outputs_to_losses("logits", np.zeros((2, 3)), np.zeros((1, 2, 2)), np.array([0, 1]), IDS)


def test_one_label_too_few_is_refused() -> None:
    with pytest.raises(InputError, match="give one label a record"):
        outputs_to_losses("logits", np.zeros((2, 3)), np.zeros((1, 2, 3)), np.array([0]), IDS)
