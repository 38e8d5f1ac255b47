from __future__ import annotations

from typing import Any

import pytest

from glasshouse import InputError
from glasshouse.attacks import BASE
from glasshouse.attacks.attack import chosen_attacks


def test_names_mappings_and_objects_may_be_mixed() -> None:
    made = chosen_attacks(["lira", BASE(prior=0.2), {"name": "base", "prior": 0.3}], mode="offline", prior=0.1)
    assert list(made) == ["lira", "base", "base-2"]
    assert [getattr(attack, "prior", None) for attack in made.values()] == [None, 0.2, 0.3]
    assert made["lira"] == chosen_attacks("lira", mode="offline")["lira"]


def test_every_fault_is_said_with_its_place() -> None:
    with pytest.raises(InputError) as caught:
        chosen_attacks(["rmai", "base", {"gamma": 1}])
    assert [fault.split(":")[0] for fault in caught.value.faults] == ["attacks[0]", "attacks[2]"]
    with pytest.raises(InputError, match="none given"):
        chosen_attacks([])


@pytest.mark.parametrize(
    ("choice", "message"),
    [(BASE, r"BASE is not an attack; .* such as BASE\(\)"), (7, "int is not an attack; .* or an attack object.")],
)
def test_what_is_not_an_attack_is_refused_in_one_line(choice: Any, message: str) -> None:
    with pytest.raises(InputError, match=rf"attacks\[0\]: {message}"):
        chosen_attacks([choice])
