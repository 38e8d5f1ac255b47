from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from glasshouse import InputError
from glasshouse.core.registry import Registry


@dataclass(frozen=True, kw_only=True)
class Lamp:
    watts: int = 40
    colour: str = "white"


LAMPS: Registry[type[Lamp]] = Registry("a lamp")
LAMPS.add("desk", Lamp)


def test_shared_parameters_reach_only_those_that_have_them_and_ones_own_come_first() -> None:
    assert LAMPS.create("desk", shared={"watts": 10, "height": 3}) == Lamp(watts=10)
    assert LAMPS.names() == ["desk"]
    assert LAMPS.parameters("desk") == ["watts", "colour"]


def test_unknown_names_and_parameters_say_what_is_known() -> None:
    with pytest.raises(InputError, match='"dask" is not a lamp. Did you mean "desk"'):
        LAMPS.create("dask")
    with pytest.raises(InputError, match="'wats' is not a parameter of it. Known: watts, colour"):
        LAMPS.create("desk", wats=3)


@pytest.mark.parametrize("given", [print, ["desk"], None, 3])
def test_what_is_no_name_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match="is not the name of a lamp. Known: desk"):
        LAMPS.find(given)
