"""What several tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# one seed drives everything, the tests' random inputs too; noisy machines must not fail a test by its clock
settings.register_profile(
    "glasshouse", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("glasshouse")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets: GLASSHOUSE_DATA, or shared/datasets beside the checkout."""
    places = [os.environ.get("GLASSHOUSE_DATA"), Path(__file__).parents[2] / "shared" / "datasets"]
    for place in places:
        if place and Path(place).is_dir():
            return Path(place)
    pytest.skip("real data sets are not here: set GLASSHOUSE_DATA to a folder that holds them")
