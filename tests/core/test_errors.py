from __future__ import annotations

import pytest

from glasshouse.core.errors import InputError, raise_faults


def test_all_faults_are_raised_at_once() -> None:
    with pytest.raises(InputError) as caught:
        raise_faults(["first", "second"])
    assert caught.value.faults == ("first", "second")
    assert str(caught.value) == "first\nsecond"
