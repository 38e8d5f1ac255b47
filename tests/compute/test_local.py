from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from multiprocessing import AuthenticationError
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from glasshouse import InputError, Population, TorchTrainer
from glasshouse.compute import Compute, LocalProcesses, RayCluster, ThisProcess, chosen_compute, gpu_share, local
from glasshouse.compute.base import share_gpu
from glasshouse.compute.local import Desk, ask_desk, end_with
from glasshouse.compute.ray import check_answers
from glasshouse.data import complementary_halves
from glasshouse.graph.rule.incremental.engine import default_memory
from glasshouse.pool import ShadowPool
from glasshouse.query.classify import query
from glasshouse.training import mlp
from tests.compute.work import about, counted, dies_once, workers_of

RANDOM = np.random.default_rng(0)
POPULATION = Population(RANDOM.normal(size=(40, 3)).astype(np.float32), RANDOM.integers(2, size=40))
HALVES = complementary_halves(40, models=4, seed=0)
TRAINER = TorchTrainer(module=mlp(3, 2, hidden=(4,)), epochs=2, device="cpu")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def trained(folder: Path, compute: Compute, trainer: Any = TRAINER, shadows: int = 4) -> dict[str, bytes]:
    ShadowPool.plan(POPULATION, trainer, shadows=shadows, folder=folder, compute=compute).train(progress=False)
    return contents(folder)


def test_local_workers_give_the_same_bytes_and_stay_with_what_they_were_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glasshouse.compute.local._gpus", lambda: ["GPU-a", "GPU-b"])
    model = mlp(3, 2)()
    with LocalProcesses(workers=2).opened() as workers:
        assert trained(tmp_path / "here", ThisProcess()) == trained(tmp_path / "there", workers)
        plain = [query(model, POPULATION).loss for model in ShadowPool.plan(POPULATION, TRAINER, shadows=4)]
        away = ShadowPool.plan(POPULATION, TRAINER, shadows=4, compute=workers)
        np.testing.assert_allclose([query(model, POPULATION).loss for model in away], plain, rtol=1e-6)
        found = [seen for _ in range(2) for _, seen in workers.run(about, (model,), [0, 1, 2, 3])]
    assert len({process for process, _, _ in found}) == 2
    assert {gpu for _, gpu, _ in found} == {"GPU-a", "GPU-b"}
    assert len(set(found)) == 2, "a worker saw two devices, or made a model twice"


def test_lambdas_and_closures_travel_to_workers_and_what_cannot_is_named(tmp_path: Path) -> None:
    share, lock = 0.25, threading.Lock()
    closure: Any = lambda population, members, seed: lambda x: x[:, :2] * share  # noqa: E731
    there = ShadowPool.plan(POPULATION, closure, shadows=4, compute=LocalProcesses(workers=2))
    here = ShadowPool.plan(POPULATION, closure, shadows=4)
    for away, near in zip(there, here, strict=True):
        np.testing.assert_array_equal(query(away, POPULATION).loss, query(near, POPULATION).loss)
    locked: Any = lambda population, members, seed: lock and closure(population, members, seed)  # noqa: E731
    with pytest.raises(
        InputError, match=r"cannot be sent to worker processes \(TypeError: cannot pickle '_thread.lock'"
    ):
        list(ShadowPool.plan(POPULATION, locked, shadows=4, compute=LocalProcesses(workers=2)))


def test_a_killed_workers_tasks_are_run_again_and_there_are_no_more_workers_than_tasks(tmp_path: Path) -> None:
    before, counts, found = workers_of(os.getpid()), [], {}
    for position, result in LocalProcesses(workers=9).run(dies_once, (str(tmp_path / "died"),), [0, 1]):
        counts.append(workers_of(os.getpid()) - before)
        found[position] = result
    assert found == {0: 0, 1: 10}
    assert (tmp_path / "died").exists()
    assert 1 <= max(counts) <= 2
    assert workers_of(os.getpid()) == before, "a worker is left"


def test_one_task_has_one_worker_and_not_this_process() -> None:
    before = workers_of(os.getpid())
    [(position, (process, count))] = list(LocalProcesses(workers=9).run(counted, (), [7]))
    assert position == 0
    assert process != os.getpid()
    assert count == before + 1, "or it imports from the working folder"
    assert workers_of(os.getpid()) == before, "a worker is left"


def test_processes_that_are_started_import_nothing_from_the_working_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are told by themselves; what else loky starts is given the environment, which is then as before."""
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    found: list[str | None] = []
    for place in ("multiprocessing.resource_tracker", "joblib.externals.loky.backend.resource_tracker"):
        monkeypatch.setattr(f"{place}.ensure_running", lambda: found.append(os.environ.get("PYTHONSAFEPATH")))
    local._start_trackers()
    assert found == ["1", "1"]
    assert "PYTHONSAFEPATH" not in os.environ


def test_a_lock_that_was_removed_without_a_word_is_no_warning_to_the_user() -> None:
    """Libraries remove locks in threads that end with the process, sometimes before they have told the tracker."""
    script = """
from joblib.externals.loky.backend import resource_tracker
from glasshouse.compute import local
local._start_trackers()
resource_tracker.register("/a-lock-that-is-gone", "semlock")
print("ran")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert (done.stdout, done.stderr) == ("ran\n", "")


def test_a_worker_ends_when_the_process_that_started_it_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glasshouse.compute.local._LOOK", 0.05)
    ended, alive = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about threads and forks
        driver = os.fork()
        if not driver:
            worker = os.fork()
            if not worker:
                end_with(os.getppid())
                time.sleep(60)
            os.read(ended, 1)  # until it is killed
            os._exit(0)
    os.close(alive)
    assert select.select([ended], [], [], 0.3)[0] == [], "the worker ended although its parent lives"
    os.kill(driver, signal.SIGKILL)
    os.waitpid(driver, 0)
    assert select.select([ended], [], [], 20)[0] == [ended], "the worker goes on although its parent is gone"
    os.close(ended)


def test_a_worker_has_its_share_of_the_cores() -> None:
    assert LocalProcesses(workers=1000).threads == 1
    assert LocalProcesses(workers=1).threads >= 1


def test_the_command_lines_choice() -> None:
    assert chosen_compute() == ThisProcess()
    assert chosen_compute(workers=3) == LocalProcesses(workers=3)
    assert chosen_compute(cluster="auto") == RayCluster(address="auto")
    assert chosen_compute(cluster="auto", gpus=0.5) == RayCluster(address="auto", gpus=0.5)
    with pytest.raises(InputError, match="--gpus: .* give --cluster too"):
        chosen_compute(workers=2, gpus=1)
    with pytest.raises(InputError, match="give one of them"):
        chosen_compute(workers=2, cluster="auto")
    with pytest.raises(InputError, match="not a number of processes"):
        chosen_compute(workers=0)


@contextlib.contextmanager
def server(answer: bytes | None) -> Iterator[str]:
    """Something on this machine that is not Ray: it says a few bytes, or nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                line, _ = listening.accept()
                with line:
                    if answer is None:
                        time.sleep(1.0)
                    else:
                        line.recv(1024)
                        line.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize(
    ("answer", "said"),
    [(None, "timed out"), (b"", "closed the connection"), (b"HTTP/1.1 400 Bad Request", "else than Ray answers")],
)
def test_an_address_where_something_else_answers_is_refused_in_one_line(answer: bytes | None, said: str) -> None:
    with server(answer) as address, pytest.raises(InputError, match=f"no Ray cluster answers at .*{said}.*Start it"):
        check_answers(f"ray://{address}", seconds=0.3)


@pytest.mark.parametrize(("failures", "refused"), [(0, False), (1, False), (2, True)])
def test_a_cluster_that_breaks_off_is_asked_once_more(
    monkeypatch: pytest.MonkeyPatch, failures: int, refused: bool
) -> None:
    """Ray's proxy starts a server for each client, and fails if it looks at that server too early."""
    broken = [ConnectionAbortedError("Initialization failure from server:")] * failures
    ray = Mock(is_initialized=Mock(return_value=False), init=Mock(side_effect=[*broken, None]))
    monkeypatch.setattr("glasshouse.compute.ray._imported", lambda: ray)
    monkeypatch.setattr("glasshouse.compute.ray.check_answers", lambda address: None)
    expected = (
        pytest.raises(InputError, match="no Ray cluster at .*Initialization failure")
        if refused
        else contextlib.nullcontext()
    )
    with expected, RayCluster(address="ray://127.0.0.1:1")._connected() as found:
        assert found is ray
    assert ray.init.call_count == min(failures + 1, 2)


def test_a_cluster_whose_server_for_clients_never_starts_is_one_line_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's client then waits without end."""
    let_go = threading.Event()
    ray = Mock(is_initialized=Mock(return_value=False), init=Mock(side_effect=lambda **_: let_go.wait(60)))
    monkeypatch.setattr("glasshouse.compute.ray._imported", lambda: ray)
    monkeypatch.setattr("glasshouse.compute.ray.check_answers", lambda address: None)
    monkeypatch.setattr("glasshouse.compute.ray._JOINING", 0.05)
    said = (
        "no Ray cluster at 'ray://127.0.0.1:1': TimeoutError: its server for clients did not start within .* s. Retry"
    )
    with pytest.raises(InputError, match=said):
        list(RayCluster(address="ray://127.0.0.1:1").run(dies_once, ("",), [0]))
    let_go.set()


def test_a_closed_port_is_one_line_before_ray_is_asked_to_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray itself would try for a quarter of an hour."""
    pytest.importorskip("ray", reason="the extra `cluster` is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr("glasshouse.compute.ray._join", lambda *_: pytest.fail("Ray was asked to join"))
    for address in (f"ray://127.0.0.1:{port}", f"127.0.0.1:{port}"):
        with pytest.raises(InputError, match=f"no Ray cluster answers at '{address}' .Connection refused"):
            list(RayCluster(address=address).run(dies_once, ("",), [0]))
    for wrong in ("ray://", "host:port", "host:99999"):
        with pytest.raises(InputError, match="is not an address. Use auto"):
            RayCluster(address=wrong).check()


def test_workers_on_one_gpu_share_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSHOUSE_GPU_SHARERS", "")
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda _: (2**37, 2**37))
    gpu = torch.device("cuda")
    assert gpu_share() == 1.0
    assert default_memory(gpu) == 2**35
    share_gpu(2)
    share_gpu(4)  # workers of a worker
    assert gpu_share() == 1 / 8
    assert default_memory(gpu) == 2**32


def test_strangers_on_this_machine_get_no_parcel_and_keep_nobody_waiting() -> None:
    """Another user of the machine can reach the port; who says nothing kept all workers waiting."""
    desk = Desk()
    desk.parcels["7"] = b"data"
    host, port, _ = desk.address
    assert host == "127.0.0.1"
    silent = [socket.create_connection((host, port)) for _ in range(3)]
    found: list[bytes] = []
    worker = threading.Thread(target=lambda: found.append(ask_desk(desk.address, "7")), daemon=True)
    worker.start()
    worker.join(timeout=30)
    assert found == [b"data"]
    with pytest.raises(AuthenticationError):
        ask_desk((host, port, b"guessed"), "7")
    rude = socket.create_connection((host, port))
    rude.sendall(b"\xff" * 64)
    assert ask_desk(desk.address, "7") == b"data"
    for line in (*silent, rude):
        line.close()
    desk.close()
