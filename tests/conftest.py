"""What several tests share."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.forked import Forks

# one seed drives everything, the tests' random inputs too; noisy machines must not fail a test by its clock
settings.register_profile(
    "glasshouse", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("glasshouse")

# Files that take long for how few tests they have, as a new environment, a cluster or kills do. They start first; the
# others follow by their number of tests, so that no worker is left alone with much at the end.
FIRST = (
    "tests/project/test_wheel.py",
    "tests/compute/test_ray.py",
    "tests/cli/test_working_folder.py",
    "tests/experiments/test_lanes.py",
    "tests/benchmarks/test_small_versions.py",
    "tests/project/test_start.py",
    "tests/docs/test_examples.py",
    "tests/io/test_process_limit.py",
    "tests/pool/test_resume.py",
    "tests/graph/sampling/test_gibbs.py",
)

# Statistics over many runs, and kernels held against the rule as written. Other tests reach the same lines, all but
# three of them; to trace these too would make them a third slower.
UNTRACED = (
    "tests/evaluation/test_thresholds.py",
    "tests/graph/rule/two_layers/test_engine.py::test_kernels_equal_the_rule_as_written",
    "tests/graph/rule/test_real_graphs.py",
    "tests/graph/sampling/test_groups.py::test_gibbs_over_several_shapes_takes",
    "tests/graph/sampling/test_groups.py::test_metropolis_over_several_shapes_takes",
    "tests/benchmarks/test_small_versions.py::test_cora",
    "tests/benchmarks/test_small_versions.py::test_intervals",
    "tests/benchmarks/test_small_versions.py::test_models_trained_together",
    "tests/benchmarks/test_cheap.py",
    "tests/benchmarks/test_null.py",
    "tests/query/test_estimators.py",
    "tests/test_same_bytes.py",
    "tests/verdicts/test_records.py",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order files for workers that take them one by one (``--dist loadfile --no-loadscope-reorder``)."""
    if hasattr(config, "workerinput"):
        files = [item.nodeid.partition("::")[0] for item in items]
        count = Counter(files)
        places = {file: (FIRST.index(file) if file in FIRST else len(FIRST), -count[file]) for file in count}
        items[:] = [item for _, item in sorted(zip(files, items, strict=True), key=lambda pair: places[pair[0]])]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Stop the trace for these tests; pytest-cov's own mark does not do it in the workers of xdist."""
    if not item.nodeid.startswith(UNTRACED):
        return (yield)
    here, threads = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        return (yield)
    finally:
        threading.settrace(threads)
        sys.settrace(here)


_FORKS = pytest.StashKey[Forks]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Fork once everything is imported and before anything runs; only where a test asks for it.

    What was imported is there until the end, so the garbage collector need not look at it again and again.
    """
    gc.collect()
    gc.freeze()
    if any("forks" in getattr(item, "fixturenames", ()) for item in getattr(session, "items", ())):
        session.config.stash[_FORKS] = Forks()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if (forks := session.config.stash.get(_FORKS, None)) is not None:
        forks.close()


@pytest.fixture(scope="session")
def forks(request: pytest.FixtureRequest) -> Forks:
    """Runs scripts in processes of their own that have imported everything already."""
    return request.config.stash[_FORKS]


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets: GLASSHOUSE_DATA, or shared/datasets beside the checkout."""
    places = [os.environ.get("GLASSHOUSE_DATA"), Path(__file__).parents[2] / "shared" / "datasets"]
    for place in places:
        if place and Path(place).is_dir():
            return Path(place)
    pytest.skip("real data sets are not here: set GLASSHOUSE_DATA to a folder that holds them")
