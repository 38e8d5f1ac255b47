"""A small version of `blind.py`: few alarms on random members, and one where they depend on the records."""

from __future__ import annotations

from tests.benchmarks.scripts import benchmark


def test_random_members_cause_few_alarms_and_ordinary_other_draws_are_found() -> None:
    blind = benchmark("blind")
    alarms = [blind.false_alarms(kind, 200, share, 4) for kind in ("5 columns", "text") for share in blind.SHARES]
    assert sum(alarms) <= 2  # of 24; three or more happen in 0.2 % of the seeds
    found = {case.name: blind.power(case, 1)[0] for case in list(blind.cases())[:3]}
    assert all(found.values()), found


def test_what_looks_like_a_leak_without_one_is_found_where_the_dependence_is_clear() -> None:
    missed = benchmark("blind").mild(1.5, digits=False, draws=3, targets=1, count=500)
    assert missed.found == 1.0
    assert missed.missed_auc == missed.missed_epsilon == 0.0
