from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import polars
import pytest
import torch

from glasshouse import Evidence, InputError, Population, SklearnTrainer, audit, audit_evidence
from glasshouse.data import as_members, check_members_fit

IDS = np.array([f"p{number}" for number in range(6)])
MASK = np.array([True, False, True, True, False, False])
FORMS: dict[str, Any] = {
    "a mask": MASK,
    "a list": MASK.tolist(),
    "ones and zeros": MASK.astype(int),
    "floats": MASK.astype(float),
    "a tensor": torch.from_numpy(MASK),
    "a column": pandas.Series(MASK),
    "a column that may be empty": pandas.Series(MASK, dtype="boolean"),
    "objects": np.array(MASK.tolist(), dtype=object),
    "a column of polars": polars.Series(MASK),
    "ids": ["p0", "p2", "p3"],
    "ids in another order": ["p3", "p0", "p2"],
    "an array of ids": IDS[MASK],
    "a set of ids": {"p0", "p2", "p3"},
    "a column of ids": pandas.Series(IDS[MASK]),
    "an index": pandas.Index(IDS[MASK]),
    "ids of polars": polars.Series(IDS[MASK].tolist()),
}


@pytest.mark.parametrize("form", FORMS)
def test_members_are_the_same_in_every_form(form: str) -> None:
    assert (as_members(FORMS[form], (6,), place="members", ids=IDS) == MASK).all()


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([0, 2, 3], r"np.isin\(np.arange\(6\), numbers\)\. If they are ids, give them as text"),
        ([1, 2, 3, 4, 5, 6], "holds only true and false"),
        (["p0", "p9", "p8"], "2 of 3 ids are not in the population, such as 'p9'; its ids are like 'p0'"),
        (
            ["yes", "no"] * 3,
            "holds the text '.*'; a mask holds True and False. If 'yes' marks members, use column == 'yes'",
        ),
        ([True, None, False, True, True, False], "entry 1 is empty"),
        (pandas.Series([True, None, False, True, True, False], dtype="boolean"), "entry 1 is empty"),
        ([1.0, np.nan, 0.0, 1.0, 0.0, 0.0], "entry 1 is empty"),
        (np.array([1.0, np.nan, 0.0, 1.0, 0.0, 0.0]), "holds only true and false"),
        (["p0", 3], "holds text and other values"),
        ("member", r"the text 'member' is neither .* such as frame\['member'\]"),
        (pandas.DataFrame({"member": MASK}), "a DataFrame is neither a mask nor a list of ids"),
    ],
)
def test_what_could_mean_two_things_is_refused_with_the_fix(members: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_members(members, (6,), place="members", ids=IDS)


def test_a_feature_that_says_who_is_a_member_is_refused() -> None:
    for column in (MASK, ~MASK, MASK.astype(float)):
        for frame in (pandas.DataFrame({"age": range(6), "in": column}), polars.DataFrame({"in": column})):
            with pytest.raises(InputError, match=r"the column 'in' .* leave_out=\['in'\]"):
                check_members_fit(frame, MASK)
        with pytest.raises(InputError, match="'in'"):
            check_members_fit({"input_ids": np.zeros((6, 2)), "in": column}, MASK)
    check_members_fit(pandas.DataFrame({"age": range(6), "job": ["x"] * 6}), MASK)
    check_members_fit(np.stack([MASK, MASK], axis=1), MASK)


def test_a_mask_in_another_order_than_the_table_is_refused() -> None:
    frame = pandas.DataFrame({"age": range(6)})
    with pytest.raises(InputError, match=r"in another order. Use .loc\[frame.index\]"):
        check_members_fit(frame, MASK, given=pandas.Series(MASK)[::-1])
    check_members_fit(frame, MASK, given=pandas.Series(MASK))
    check_members_fit(frame, MASK, given=pandas.Series(MASK, index=range(10, 16)))  # another table's numbers


def test_a_mask_of_other_rows_of_the_same_table_is_refused() -> None:
    """After ``frame[2:]`` a mask of the first rows fits in length alone, and every record would get another's entry."""
    whole = pandas.DataFrame({"age": range(8), "y": [0, 0, 1, 1] * 2})
    mask = pandas.Series([True, False] * 4)
    with pytest.raises(InputError, match="members: their index has only 4 of the 6 rows of the data frame"):
        check_members_fit(whole[2:], mask[:6].to_numpy(), given=mask[:6])
    with pytest.raises(InputError, match="population: labels: their index has only 4 of the 6 rows"):
        Population(whole[["age"]][2:], whole["y"][:6])
    check_members_fit(whole[2:], mask[2:].to_numpy(), given=mask[2:])


def test_a_mask_of_words_is_refused_with_the_word_that_means_member() -> None:
    with pytest.raises(InputError, match=r"holds the text 'no'; .* If 'yes' marks members, use column == 'yes'"):
        as_members(["no", "yes"], (2,), place="members", ids=np.array(["a", "b"]))


def test_an_audit_takes_ids_and_a_column_and_gives_the_same() -> None:
    from sklearn.tree import DecisionTreeClassifier

    random = np.random.default_rng(0)
    frame = pandas.DataFrame(random.normal(size=(80, 3)), columns=["a", "b", "c"])
    frame["y"], frame["id"] = random.integers(2, size=80), [f"r{number}" for number in range(80)]
    frame["in"] = np.arange(80) % 2 == 0
    trainer = SklearnTrainer(estimator=DecisionTreeClassifier())
    options: dict[str, Any] = {"trainer": trainer, "attacks": ["base"], "shadows": 2, "progress": False}
    population = Population(frame, "y", ids="id", leave_out=["in"])
    mask, ids = (audit(population, members=one, **options) for one in (frame["in"], frame["id"][frame["in"]]))
    assert repr(mask.outcomes["base"].metrics) == repr(ids.outcomes["base"].metrics)
    with pytest.raises(InputError, match="the column 'in' of the features says who is a member"):
        audit(Population(frame, "y", ids="id"), members=frame["in"], **options)
    evidence = Evidence(
        target_loss=[0.1, 2.0, 0.3],
        shadow_loss=np.ones((2, 3)),
        shadow_members=[[1, 0, 1], [0, 1, 0]],
        ids=["a", "b", "c"],
    )
    assert audit_evidence(evidence, members=["a", "c"], attacks=["base"]).members.tolist() == [True, False, True]  # type: ignore[union-attr]
