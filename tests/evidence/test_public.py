from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from glasshouse import InputError
from glasshouse.evidence.evidence import public_mask

MEMBERS = np.arange(200) < 100


def test_a_share_is_drawn_from_the_non_members_by_the_seed() -> None:
    drawn = public_mask(0.3, MEMBERS, seed=1)
    assert drawn.sum() == 30
    assert not (drawn & MEMBERS).any()
    assert (drawn == public_mask(0.3, MEMBERS, seed=1)).all()
    assert (drawn != public_mask(0.3, MEMBERS, seed=2)).any()


def test_a_mask_is_taken_as_it_is() -> None:
    mask = np.arange(200) >= 150
    assert (public_mask(mask, MEMBERS, seed=0) == mask).all()
    assert not public_mask(None, MEMBERS, seed=0).any()


@pytest.mark.parametrize(
    ("public", "message"),
    [
        (1.5, "is not a share"),
        ("test", "'test' is not a share"),
        (True, "True is not a share"),
        (np.arange(200) >= 90, "10 of the public records trained the target"),
        (np.arange(200) >= 190, "10 of 100 non-members are public"),
        (~MEMBERS, "others to be judged"),
        ([True, False], "public"),
    ],
)
def test_what_cannot_be_public_is_refused(public: ArrayLike, message: str) -> None:
    with pytest.raises(InputError, match=message):
        public_mask(public, MEMBERS, seed=0)
