"""A target over a wire: a real HTTP server in a thread, with faults."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from glasshouse import Attacker, InputError, LabelOnly, Population, RemoteModel, audit
from glasshouse.data import random_subsets

COUNT = 120
X = np.random.default_rng(0).normal(size=(COUNT, 4))
Y = (X[:, 0] + np.random.default_rng(1).normal(size=COUNT) > 0).astype(int)
MEMBERS = random_subsets(COUNT, models=1, fraction=0.5, seed=3)[0]
TREE = DecisionTreeClassifier(max_depth=6, random_state=0).fit(X[MEMBERS], Y[MEMBERS])
POPULATION = Population(X, Y)


class Server(ThreadingHTTPServer):
    """Answers about trees; ``faults`` decides by the number of a request what goes wrong."""

    def __init__(self) -> None:
        self.requests, self.answered = 0, Counter[str]()
        self.faults: Any = lambda number, rows: 0
        self.reply: Any = lambda rows: TREE.predict_proba(rows).tolist()
        self.headers: list[Any] = []
        self.counting = threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/predict"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["inputs"]
        with self.server.counting:
            self.server.requests += 1
            self.server.headers.append(self.headers)
            status = self.server.faults(self.server.requests, rows)
            if status == 0:
                self.server.answered.update(map(str, rows))
        if status == -1:  # a restart: the connection is lost without an answer
            self.close_connection = True
            return
        body = json.dumps({"probabilities": self.server.reply(rows)}).encode() if status == 0 else b"busy"
        self.send_response(status or 200)
        if status == 429:
            self.send_header("Retry-After", "0.01")
        if status == 302:
            self.send_header("Location", "http://example.org/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as one:
        thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield one
        one.shutdown()
        thread.join()


def remote(server: Server, **options: Any) -> RemoteModel:
    return RemoteModel(**{"ask": server.url, "batch_size": 8, "wait": 0.001, **options})


def audited(model: Any, **options: Any) -> Any:
    trainer = DecisionTreeClassifier(max_depth=6)
    return audit(POPULATION, model=model, members=MEMBERS, trainer=trainer, shadows=4, attacks=["base"], **options)


def test_through_faults_figures_are_those_of_the_model_itself_and_no_record_is_asked_twice(server: Server) -> None:
    random = np.random.default_rng(0)

    def faults(number: int, rows: list[Any]) -> int:
        if len(rows) > 5:
            return 413
        return int(random.choice([0, 500, 429, -1], p=[0.85, 0.05, 0.05, 0.05]))

    server.faults = faults
    model = remote(server)
    found, wanted = audited(model), audited(TREE.predict_proba)
    assert np.array_equal(found.records()["base_score"], wanted.records()["base_score"])
    once = np.array([server.answered[str(row.tolist())] for row in X])
    assert once[:8].tolist() == [2] * 8  # asked again, to see whether answers drift
    assert once[8:].tolist() == [1] * (COUNT - 8)
    assert model.asked == COUNT + 8
    assert model.requests == server.requests
    assert not found.context.warnings
    assert any(f"over a wire: {COUNT + 8} records" in note for note in found.context.notes)


ASKING = """
import sys, numpy
from glasshouse.query.remote import RemoteModel
url, cache, records = sys.argv[1:]
RemoteModel(ask=url, batch_size=8, workers=1, wait=0.001, cache=cache)(numpy.load(records))
"""


def test_after_kill_9_a_run_goes_on_where_it_was(server: Server, tmp_path: Path) -> None:
    random, running = np.random.default_rng(0), list[subprocess.Popen[bytes]]()

    def faults(number: int, rows: list[Any]) -> int:
        if running and server.answered.total() >= 48:
            running.pop().kill()  # in the middle of a request
            return -1
        return int(random.choice([0, 500, 429, -1], p=[0.85, 0.05, 0.05, 0.05]))

    server.faults = faults
    server.reply = lambda rows: TREE.predict_proba(rows).round(2).tolist()
    cache, records = tmp_path / "answers.sqlite", tmp_path / "x.npy"
    np.save(records, X)
    process = subprocess.Popen([sys.executable, "-c", ASKING, server.url, str(cache), str(records)])  # noqa: S603 (ours)
    running.append(process)
    assert process.wait() == -signal.SIGKILL
    before = server.answered.total()
    assert before == 48
    model = remote(server, cache=cache)
    assert model.plan(X) == COUNT - before + 8
    found, wanted = audited(model), audited(lambda x: TREE.predict_proba(x).round(2))
    assert np.array_equal(found.records()["base_score"], wanted.records()["base_score"])
    once = np.array([server.answered[str(row.tolist())] for row in X])
    assert once[:8].tolist() == [2] * 8  # asked again, to see whether answers drift
    assert once[8:].tolist() == [1] * (COUNT - 8)
    assert model.asked == COUNT - before + 8


def test_a_budget_is_checked_before_anything_is_asked(server: Server) -> None:
    with pytest.raises(InputError, match=r"budget: 100 records, 0 of them asked; .* Give budget=128"):
        audited(remote(server, budget=100))
    assert server.requests == 0
    with pytest.raises(InputError, match="the audit needs 3840 different queries"):
        audited(remote(server, budget=128), attacker=Attacker(query=LabelOnly()))
    assert audited(remote(server, budget=128)).table()["auc"][0] > 0.6


def test_rounded_answers_labels_and_answers_that_drift_are_said(server: Server) -> None:
    server.reply = lambda rows: TREE.predict_proba(rows).round(2).tolist()
    assert audited(remote(server)).table()["auc"][0] > 0.6
    server.reply = lambda rows: TREE.predict(rows).tolist()
    with pytest.raises(InputError, match=r"look like class numbers.*LabelOnly"):
        audited(remote(server))
    found = audited(remote(server, batch_size=500), attacker=Attacker(query=LabelOnly(votes=4)))
    assert any("Label-only" in note for note in found.context.notes)
    random = np.random.default_rng(0)
    server.reply = lambda rows: random.dirichlet([1, 1], size=len(rows)).tolist()
    assert any("another answer when they were asked again" in said for said in audited(remote(server)).context.warnings)


def test_the_key_comes_from_the_environment_and_travels_nowhere_else(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="MY_KEY is not set"):
        remote(server, key="MY_KEY")
    monkeypatch.setenv("MY_KEY", "s3cret-value")
    model = remote(server, key="MY_KEY", cache=tmp_path / "kept")
    model(X[:3])
    assert server.headers[-1]["Authorization"] == "Bearer s3cret-value"
    assert "s3cret" not in repr(model)
    assert b"s3cret" not in (tmp_path / "kept").read_bytes()
    server.faults = lambda number, rows: 302
    with pytest.raises(InputError, match=r"HTTP 302. It points to another address"):
        model(X)
    server.faults = lambda number, rows: 401
    with pytest.raises(InputError, match=r"HTTP 401. Is the key in MY_KEY right") as caught:
        model(X)
    assert "s3cret" not in str(caught.value)


def test_a_function_is_asked_likewise_and_a_clients_own_errors_are_understood() -> None:
    calls = []

    class RateLimitError(Exception):
        status_code = 429

    def client(batch: Any) -> Any:
        calls.append(len(batch))
        if len(calls) == 1:
            raise RateLimitError("slow down")
        return {"scores": TREE.predict_proba(batch)}

    model = RemoteModel(ask=client, batch_size=50, workers=1, wait=0.001, rate=1e6)
    assert np.array_equal(model(X), TREE.predict_proba(X))
    assert calls == [50, 50, 50, 20]
    with pytest.raises(InputError, match="after 2 attempts: ConnectionError: gone"):
        RemoteModel(ask=lambda batch: (_ for _ in ()).throw(ConnectionError("gone")), attempts=2, wait=0.001)(X)
    with pytest.raises(InputError, match="ValueError: no"):
        RemoteModel(ask=lambda batch: (_ for _ in ()).throw(ValueError("no")))(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ask": "ftp://host/x"}, "ask: ftp://… is not an address"),
        ({"ask": "https://me:word@host/x"}, "without a password"),
        ({"ask": "http://host/x", "key": "MY_KEY"}, "key: would travel unencrypted"),
        ({"ask": dict}, "ask: give a URL, or a function"),
        ({"ask": len, "key": "MY_KEY"}, "key: is for a URL"),
        ({"ask": len, "workers": 0}, "workers: 0 is too small"),
        ({"ask": len, "rate": 0}, "rate: 0 is not positive"),
    ],
)
def test_what_cannot_be_asked_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RemoteModel(**options)


def test_answers_and_caches_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="120 records with 2 rows"):
        RemoteModel(ask=lambda batch: [1, 2], batch_size=COUNT)(X)
    with pytest.raises(InputError, match=r"answered with 'a', 'b'; expected one row per record"):
        RemoteModel(ask=lambda batch: {"a": 1, "b": 2})(X)
    (tmp_path / "notes.txt").write_text("not a database, but long enough to look at" * 9)
    with pytest.raises(InputError, match=r"notes.txt: is no file of answers"):
        RemoteModel(ask=len, cache=tmp_path / "notes.txt")
