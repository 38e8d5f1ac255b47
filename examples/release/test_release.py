"""A release test: copy it, and risk.yaml, into the tests of your own project.

Run: GLASSHOUSE_RUN=runs/audit pytest test_release.py. The fixture reads a run that ``glasshouse audit`` wrote; without
one the test is skipped, so that it does not fail on a desk where nothing was audited.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from glasshouse.config import read_policy
from glasshouse.report import read_run
from glasshouse.report.policy import Verdict, judge


@pytest.fixture
def verdict() -> Verdict:
    """What the policy beside this file says about the run."""
    run = os.environ.get("GLASSHOUSE_RUN")
    if run is None:
        pytest.skip("GLASSHOUSE_RUN does not name a run")
    policy = read_policy(Path(__file__).with_name("risk.yaml"))
    return judge(read_run(run), policy)


def test_the_model_keeps_the_policy(verdict: Verdict) -> None:
    assert verdict.status == "passed", "\n".join(finding.line for finding in verdict.findings)
