"""A real Ray cluster on this machine, one for all these tests: it takes half a minute to start."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glasshouse import Evidence
from glasshouse.attacks import create
from glasshouse.compute import RayCluster, ThisProcess, spreading_over
from tests.compute.test_local import HALVES, RANDOM, trained
from tests.compute.work import SlowTrainer, crowd

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[tuple[Any, Any, int]]:
    """A head with two GPUs in name alone, one more node without any, and the port of the client server."""
    pytest.importorskip("ray", reason="the extra `cluster` is not installed")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch, socket.socket() as free:
        places = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(places))  # its workers import what the tests give them
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S", "120")  # on a busy machine 30 s are too few
        for name in ("RAY_ADDRESS", "CUDA_VISIBLE_DEVICES"):
            patch.delenv(name, raising=False)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        head = {"num_cpus": 2, "num_gpus": 2, "include_dashboard": False}
        if importlib.util.find_spec("grpc"):
            head["ray_client_server_port"] = port
        cluster = Cluster(initialize_head=True, head_node_args=head)
        node = cluster.add_node(num_cpus=1, num_gpus=0)
        yield cluster, node, port
        cluster.shutdown()  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module")
def client(two_nodes: tuple[Any, Any, int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Future[str] | None]:
    """What `through_the_client` will say, while the first test goes on: it mostly waits for Ray to start processes."""
    if importlib.util.find_spec("grpc"):  # of the extra as it is installed: ray[client]
        with ThreadPoolExecutor(1) as aside:
            yield aside.submit(through_the_client, two_nodes[2], tmp_path_factory.mktemp("client"))
    else:
        yield None


@pytest.mark.usefixtures("client")
@pytest.mark.filterwarnings("ignore")  # of Ray's own threads and sockets
def test_tasks_on_a_cluster_do_not_crowd_a_gpu(two_nodes: tuple[Any, Any, int]) -> None:
    """By a connection of the user's own, which stays."""
    import ray

    ray.init(address=two_nodes[0].address, log_to_driver=False)
    try:
        found = [when for _, when in RayCluster(cpus=0.5, gpus=1).run(crowd, (), range(3))]
        assert ray.is_initialized()
    finally:
        ray.shutdown()
    assert max(sum(began <= at < ended for began, ended, _ in found) for at, _, _ in found) <= 2
    for device in ("0", "1"):
        turns = sorted((began, ended) for began, ended, seen in found if seen == device)
        assert turns, "a device was not used"
        assert all(ended <= began for (_, ended), (began, _) in pairwise(turns)), "two tasks shared a device"


CLIENT = """
import sys
import ray
from glasshouse.compute import RayCluster
from tests.compute.work import dies_once

print(sorted(RayCluster(address=sys.argv[1]).run(dies_once, (sys.argv[2],), [0, 1, 2])), ray.is_initialized())
"""


def through_the_client(port: int, folder: Path) -> str:
    """Tasks over ``ray://``, one of which kills its worker; and whether a connection is left open.

    In a process of its own, and once more in another: where Ray's client server fails to start (its proxy forks, and a
    poller of grpc then finds a closed file), Ray's client waits without end for a thread of its own to stop.
    """
    for attempt in range(2):
        command = [sys.executable, "-c", CLIENT, f"ray://127.0.0.1:{port}", str(folder / f"died {attempt}")]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT)  # noqa: S603
        except subprocess.TimeoutExpired:
            continue
        return ran.stdout.strip() or ran.stderr
    return "Ray's client never answered"


@pytest.mark.filterwarnings("ignore")  # of Ray's own threads and sockets, which outlive a removed node for a moment
def test_a_pool_completes_although_a_node_is_lost(
    two_nodes: tuple[Any, Any, int], client: Future[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of this file: the node does not come back."""
    import ray

    cluster, node, _ = two_nodes
    if client is not None:
        assert client.result() == "[(0, 0), (1, 10), (2, 20)] False"
    with RayCluster(address=cluster.address).opened() as connected:
        assert dict(connected.run(pow, (2,), [1, 2])) == {0: 2, 1: 4}
        removal = threading.Timer(1.0, lambda: cluster.remove_node(node, allow_graceful=False))
        removal.start()
        found = trained(tmp_path / "cluster", connected, SlowTrainer(), shadows=12)
        removal.join()
        # the workers that are left score too, with what was sent to them
        monkeypatch.setattr("glasshouse.compute.base._START", 0.0)
        view = Evidence(target_loss=RANDOM.random(40), shadow_loss=RANDOM.random((4, 40)), shadow_members=HALVES)
        near = list(create("loss").simulated_scores(view))
        with spreading_over(connected):
            for (scores, _), (here, _) in zip(create("loss").simulated_scores(view), near, strict=True):
                np.testing.assert_array_equal(scores, here)
    assert not ray.is_initialized(), "the connection was left open"
    assert len(cluster.list_all_nodes()) == 1
    monkeypatch.setenv("PACE", "0")  # here the same training need not be slow
    assert found == trained(tmp_path / "here", ThisProcess(), SlowTrainer(), shadows=12)
