from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from glasshouse.attacks import LossThreshold
from glasshouse.attacks.attack import Attack, chosen_attacks
from glasshouse.auditing.options import Evaluation
from glasshouse.auditing.steps import (
    audit_view,
    check_attacks,
    checked_members,
    checked_rates,
    library_versions,
    prior_text,
    train_shadows,
)
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.report import Context
from tests.strategies import gaussian_evidence

EVIDENCE, MEMBERS = gaussian_evidence(records=60, models=4, shift=2.0, seed=0)
CONTEXT = Context(shadows=4, mode="online")


@dataclass(frozen=True)
class Failing(Attack):
    name = "failing"
    error: Exception = field(default_factory=lambda: InputError("it has", "two faults"))

    def score(self, view: Any) -> FloatArray:
        raise self.error


def result_of(**attacks: Attack) -> Any:
    return audit_view(
        EVIDENCE, attacks, members=MEMBERS, labels=None, evaluation=Evaluation(fprs=(0.2,)), context=CONTEXT
    )


@dataclass
class Pool:
    folder: Any
    trained: int = 0

    def train(self, *, progress: bool | None) -> None:
        self.trained += 1


@pytest.mark.parametrize("folder", [None, "pool"])
@pytest.mark.parametrize("model", [None, "given"])
def test_models_are_trained_where_they_are_kept_or_not_given(folder: str | None, model: str | None) -> None:
    pool, asked = Pool(folder), list[BoolArray]()

    def trainer(population: Any, members: BoolArray, seed: int) -> str:
        asked.append(members)
        return "trained"

    target, _ = train_shadows(
        pool,  # type: ignore[arg-type]
        trainer,
        population=None,
        model=model,
        members=MEMBERS,
        seed=0,
        progress=False,
    )
    assert pool.trained == (folder is not None)
    assert target == (model or "trained")
    assert len(asked) == (model is None)


def test_half_of_the_records_train_a_target_that_is_not_given() -> None:
    drawn = checked_members(None, None, 40, seed=3)
    assert drawn.sum() == 20
    assert np.array_equal(drawn, checked_members(None, None, 40, seed=3))
    assert checked_members("model", [1, 0], 2, seed=0).tolist() == [True, False]
    with pytest.raises(InputError, match="the records that trained it"):
        checked_members("model", None, 2, seed=0)


def test_every_attack_that_the_pool_cannot_serve_is_named_at_once() -> None:
    pool = np.array([[True, True], [True, False]])
    with pytest.raises(InputError) as refused:
        check_attacks(chosen_attacks(["loss", "lira", "bavaria"]), pool)
    assert [fault.split(":")[1].strip() for fault in refused.value.faults] == ["lira", "bavaria"]
    assert list(check_attacks(chosen_attacks(["loss"]), pool)[0]) == ["loss"]


def test_an_attack_that_the_user_did_not_name_is_left_out_with_its_reason() -> None:
    pool = np.array([[True, True], [True, False]])
    kept, left_out = check_attacks(chosen_attacks(["loss", "lira"]), pool, named=False)
    assert list(kept) == ["loss"]
    assert "0 out-models" in left_out["lira"]
    with pytest.raises(InputError, match="lira"):  # nothing would be left
        check_attacks(chosen_attacks(["lira"]), pool, named=False)


def test_an_attack_that_fails_fails_alone(caplog: pytest.LogCaptureFixture) -> None:
    result = result_of(loss=LossThreshold(), refused=Failing(), broken=Failing(ZeroDivisionError("1 / 0")))
    assert list(result.outcomes) == ["loss"]
    assert result.left_out == {"refused": "it has two faults", "broken": "it failed: ZeroDivisionError: 1 / 0"}
    assert "The attack broken failed" in caplog.text
    assert "refused" not in caplog.text


def test_where_all_attacks_fail_the_reasons_are_told() -> None:
    with pytest.raises(InputError, match="attacks: one: it has two faults"):
        result_of(one=Failing())


def test_rates_need_both_kinds_of_record() -> None:
    assert checked_rates([0.2], MEMBERS) == (0.2,)
    for members in (np.ones(4, np.bool_), np.zeros(4, np.bool_)):
        with pytest.raises(InputError, match="both members and non-members"):
            checked_rates(None, members)


def test_a_prior_is_shown_as_a_number_or_by_how_many_there_are() -> None:
    assert (prior_text(0.3), prior_text(np.full(7, 0.3))) == (0.3, "one for each of 7 records")


def test_versions_name_python_and_what_is_not_installed() -> None:
    found = library_versions("no-such-library")
    assert found["python"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}")
    assert found["numpy"] == np.__version__
    assert found["no-such-library"] == "not installed"
