from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from glasshouse.config.columns import TableSection
from glasshouse.config.yaml_model import faults_of


def faults(keys: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        TableSection.model_validate({"name": "file"} | keys)
    return "\n".join(faults_of(caught.value, TableSection))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "path: is missing. Give path, or both train and holdout."),
        ({"train": "a.csv"}, "holdout: is missing."),
        ({"holdout": "a.csv"}, "train: is missing."),
        ({"path": "a.csv", "train": "b.csv"}, "path: cannot be used together with train."),
        ({"train": "a.csv", "holdout": "b.csv", "members": "c"}, "members: cannot be used together with train"),
        ({"path": "a.csv", "leaveout": ["a"]}, 'leaveout: is not a key here. Did you mean "leave_out"?'),
        ({"path": "a.csv", "leave_out": [3]}, "leave_out[0]: YAML reads 3 as a number or a yes/no value; write it in"),
        ({"path": "a.csv", "label": True}, "label: YAML reads True as a number or a yes/no value; write it in quotes."),
        ({"path": "a.csv", "max_categories": 1}, "max_categories: Input should be greater than or equal to 2"),
        ({"path": "a.csv", "decimal": "'"}, "decimal: Input should be '.' or ','"),
    ],
)
def test_faults_are_said_with_their_place(keys: dict[str, Any], message: str) -> None:
    assert message in faults(keys)


def test_one_name_is_a_list_of_one_and_the_older_name_of_members_is_read() -> None:
    section = TableSection.model_validate({"name": "file", "path": "a.csv", "groups": "sex", "member": "trained"})
    assert section.groups == ("sex",)
    assert section.members == "trained"
    assert 'member: is not a key here. Did you mean "members"?' in faults(
        {"path": "a.csv", "member": "a", "members": "b"}
    )
