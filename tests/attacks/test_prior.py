from __future__ import annotations

import numpy as np
import pytest

from glasshouse import InputError
from glasshouse.attacks.prior import check_prior, prior_log_odds


def test_one_prior_or_one_a_record_become_log_odds() -> None:
    assert prior_log_odds(0.9, 5) == pytest.approx(np.log(9.0))
    assert prior_log_odds([0.5, 0.9], 2) == pytest.approx([0.0, np.log(9.0)])
    with pytest.raises(InputError, match="3 numbers for 2 records"):
        prior_log_odds([0.5, 0.5, 0.5], 2)


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, [0.5, 1.2], float("nan")])
def test_what_is_no_probability_is_refused(prior: float | list[float]) -> None:
    with pytest.raises(InputError, match="not between 0 and 1"):
        check_prior(prior)
