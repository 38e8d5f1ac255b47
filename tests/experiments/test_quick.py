from __future__ import annotations

from glasshouse_experiments import EXPERIMENTS
from glasshouse_experiments.quick import LIMIT, MEASURED_WITH, SECONDS
from glasshouse_experiments.settings import PRESETS


def test_every_experiment_states_what_its_quick_form_costs_and_all_fit_into_ten_minutes() -> None:
    assert list(SECONDS) == list(EXPERIMENTS.names()), "measure glasshouse reproduce all --preset quick again"
    assert all(seconds > 0 for seconds in SECONDS.values())
    assert sum(SECONDS.values()) < LIMIT == 600


def test_the_quick_preset_is_the_one_whose_cost_was_measured() -> None:
    assert PRESETS.find("quick") == MEASURED_WITH, "measure glasshouse reproduce all --preset quick again"
