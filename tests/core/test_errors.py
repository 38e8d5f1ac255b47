from __future__ import annotations

import pytest

from glasshouse.core.errors import InputError, raise_faults, shortened


def test_all_faults_are_raised_at_once() -> None:
    with pytest.raises(InputError) as caught:
        raise_faults(["first", "second"])
    assert caught.value.faults == ("first", "second")
    assert str(caught.value) == "first\nsecond"


def test_a_long_value_is_cut_in_the_middle_and_never_written_out() -> None:
    assert (shortened("ann"), shortened("x" * 100_000, most=20)) == (
        "'ann'",
        "'xxxxxxx…xxxxxxx' (100000 characters)",
    )
    assert shortened(10**6000) == "a whole number of 19932 bits"
    assert shortened([0] * 1000) == "[0, 0, 0, 0, 0, 0, ...]"
