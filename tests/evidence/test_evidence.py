from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glasshouse import Evidence, InputError

GOOD: dict[str, Any] = {
    "target_loss": [0.1, 0.2],
    "shadow_loss": [[0.3, 0.4], [0.5, 0.6]],
    "shadow_members": [[1, 0], [0, 1]],
    "ids": ["ann", "bob"],
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"target_loss": [0.1, np.nan]}, "target_loss: NaN or infinite for 1 of 2 records: 'bob'"),
        (
            {"shadow_loss": [[0.3, np.inf], [0.5, 0.6]]},
            "shadow_loss: shadow model 0: NaN or infinite for 1 of 2 records: 'bob'",
        ),
        (
            {"target_loss": [-0.1, 0.2]},
            "target_loss: 1 of 2 losses are negative, first at record 'ann'. If they are log-likelihoods, negate",
        ),
        ({"target_loss": []}, "one loss per record"),
        ({"shadow_loss": [[0.3], [0.5]]}, r"shadow_loss: shape \(2, 1\) does not fit target_loss, which has 2 records"),
        ({"shadow_members": [[1, 0]]}, "shadow_members: shape"),
        ({"shadow_members": [[1, 2], [0, 1]]}, "true and false"),
        ({"ids": ["ann", "ann"]}, "id 'ann' is repeated"),
        ({"labels": [1]}, "labels: shape"),
        ({"target_logits": [[1.0, 2.0]]}, "target_logits: shape"),
    ],
)
def test_evidence_that_does_not_fit_is_refused_by_name(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Evidence(**(GOOD | changed))


def test_bad_losses_of_target_and_shadow_models_are_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        Evidence(**(GOOD | {"target_loss": [0.1, -1.0], "shadow_loss": [[np.inf, 1.0], [1.0, 1.0]]}))
    assert [fault.partition(":")[0] for fault in caught.value.faults] == ["target_loss", "shadow_loss"]


def test_a_record_without_out_models_is_named_with_what_to_do() -> None:
    evidence = Evidence(**(GOOD | {"shadow_members": [[1, 0], [1, 1]]}))
    with pytest.raises(InputError, match="record 'ann' has 0 out-models and this attack needs 1"):
        evidence.references("offline")
    assert evidence.references("online").all()
    assert repr(evidence) == "Evidence(2 records, 2 shadow models)"


def test_what_is_near_normal_is_the_margin_of_a_loss_or_the_residual_of_a_regression() -> None:
    residuals: dict[str, Any] = {"target_residual": [-1.0, 0.5], "shadow_residual": [[2.0, 0.0], [0.0, 1.0]]}
    classes, numbers = Evidence(**GOOD), Evidence(**GOOD, **residuals)
    assert classes.target_statistic == pytest.approx(-np.log(np.expm1([0.1, 0.2])))
    assert (numbers.target_statistic == [-1.0, 0.5]).all()
    assert (numbers.shadow_statistic == residuals["shadow_residual"]).all()
    part = numbers.statistic_of(0, slice(1, None))
    assert (part == numbers.shadow_statistic[0, 1:]).all()
    assert not np.shares_memory(part, numbers.shadow_residual)  # whoever asks may write into it
