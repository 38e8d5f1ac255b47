"""A model that is asked over a wire: a URL or a function, in batches, again after faults, and each record once."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.digests import row_digests
from glasshouse.core.errors import InputError, first_line, number_faults, raise_faults
from glasshouse.core.outputs import differing
from glasshouse.data.features import count_records, plain_parts, select
from glasshouse.io.files import check_name

_AGAIN = 8  # records that are asked a second time
_LONGEST = 120.0  # seconds between two attempts
_PATIENCE = 30.0  # seconds to wait for another process that writes to the cache
_NAMES = ("probabilities", "logits", "predictions", "scores", "outputs", "labels", "answers", "results")
_LOCAL = ("localhost", "127.0.0.1", "::1")
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})  # statuses that another attempt may change
_TOO_LARGE = 413


class _Refused(Exception):  # noqa: N818 (not a fault of ours)
    """An answer that is no answer: its HTTP status, if it has one, and when to ask again."""

    def __init__(self, what: str, *, status: int = 0, after: float | None = None, passing: bool = False) -> None:
        super().__init__(what)
        self.status, self.after, self.passing = status, after, passing


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A key must not travel to another address."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(kw_only=True, eq=False)
class RemoteModel:
    """A target that answers over a wire, to be given to `audit` as ``model``.

    A batch is asked again after a fault that may pass (429 with its Retry-After, 5xx, lost connections), each time
    after twice the wait, and in halves after a 413. Every answer is kept in ``cache`` under the record's content as
    soon as it is there, so no record is asked twice, and a run that was killed goes on where it was.

    Args:
        ask: a URL, which gets ``{"inputs": [...]}`` by POST and answers with one row per record, alone or under a name
            such as "probabilities"; or a function ``batch -> answers`` around any client.
        cache: file of the answers (SQLite); without it they are kept in memory only. It belongs to one model.
        batch_size: most records per request.
        workers: requests at a time.
        rate: most requests per second; None does not limit them.
        attempts: how often a batch is asked before the audit gives up.
        wait: seconds before the second attempt.
        timeout: seconds for one answer from a URL.
        budget: most records that may be asked in all; an audit that needs more is refused before it begins.
        key: name of the environment variable that holds the key of a URL, which is sent as a bearer token. The key
            itself is read when it is sent, and never kept or shown.

    Example:
        >>> model = RemoteModel(ask=lambda batch: np.stack([1 - batch[:, 0], batch[:, 0]], axis=1), batch_size=2)
        >>> model(np.array([[0.2], [0.7], [0.2]])).tolist()  # a record that is there twice is asked once
        [[0.8, 0.2], [0.30000000000000004, 0.7], [0.8, 0.2]]
        >>> model.asked
        2
    """

    ask: str | Callable[[Any], Any]
    cache: Path | str | None = None
    batch_size: int = 64
    workers: int = 4
    rate: float | None = None
    attempts: int = 8
    wait: float = 0.5
    timeout: float = 60.0
    budget: int | None = None
    key: str | None = None
    asked: int = field(default=0, init=False)  # records in requests that were answered
    requests: int = field(default=0, init=False)  # with those that failed
    _kept: dict[bytes, str] = field(default_factory=dict, init=False, repr=False)
    _not_before: float = field(default=0.0, init=False, repr=False)
    _most: int = field(default=0, init=False, repr=False)  # records per request that were not too many
    _lock: Any = field(default_factory=threading.Lock, init=False, repr=False)
    _unsteady: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        least, positive = {"batch_size": 1, "workers": 1, "attempts": 1}, ("wait", "timeout", "rate", "budget")
        raise_faults(number_faults(self, at_least=least, positive=positive))
        self._most = self.batch_size
        if isinstance(self.ask, str):
            parts = urllib.parse.urlsplit(self.ask)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
                raise InputError(
                    f"ask: {parts.scheme}://… is not an address to ask; give https://…, without a password."
                )
            if self.key and parts.scheme != "https" and parts.hostname not in _LOCAL:
                raise InputError("key: would travel unencrypted; give an address that begins with https://.")
            if self.key and not os.environ.get(self.key):
                raise InputError(f"key: the environment variable {self.key} is not set; export it before the audit.")
        elif not callable(self.ask) or isinstance(self.ask, type):
            raise InputError("ask: give a URL, or a function of a batch of records.")
        elif self.key:
            raise InputError("key: is for a URL; a function reads its own from os.environ.")
        if self.cache is not None:
            check_name(Path(self.cache))
            self._load(Path(self.cache))

    def __call__(self, x: Any) -> NDArray[Any]:
        """One answer per record, [B, …]: from the cache, or asked now."""
        digests = self._digests(x)
        places: dict[bytes, int] = {}
        for place, digest in enumerate(digests):
            places.setdefault(digest, place)
        missing = np.array([place for digest, place in places.items() if digest not in self._kept], dtype=np.int64)
        self._check_budget(len(missing))
        for rows, answers in self._answered(x, missing):
            self._keep([digests[row] for row in rows], answers)
        return _stacked([json.loads(self._kept[digest]) for digest in digests])

    def plan(self, x: Any, *, times: int = 1) -> int:
        """How many records an audit of these will have to ask, refused if the budget does not allow them.

        ``times`` is how many versions of a record it asks about, as for labels alone.
        """
        digests = set(self._digests(x))
        known = len(digests & self._kept.keys())
        needed = len(digests) - known + (times - 1) * len(digests) + min(_AGAIN, len(digests))
        self._check_budget(needed, plan=f"{len(digests) * times} different queries, of which {known} are in the cache")
        return needed

    def ask_again(self, x: Any) -> None:
        """Ask a few records a second time; `notes` say whether the answers were others."""
        some = np.arange(min(_AGAIN, count_records(x)))
        first = self(select(x, some))
        self._check_budget(len(some))
        second: list[Any] = [None] * len(some)
        for rows, answers in self._answered(x, some):
            for row, answer in zip(rows, answers, strict=True):
                second[row] = answer
        self._unsteady = int(differing(first, _stacked(second)).sum())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes figures doubtful: answers that drift."""
        if not self._unsteady:
            return ()
        return (
            f"{self._unsteady} of {_AGAIN} records got another answer when they were asked again, so the model behind "
            f"the wire draws at random, or has changed since it was first asked. The figures are those of the first "
            f"answers. Delete the cache if the model has changed.",
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report says about the asking."""
        limit = "" if self.budget is None else f" of a budget of {self.budget}"
        return (f"The target was asked over a wire: {self.asked} records{limit}, in {self.requests} requests.",)

    def _digests(self, x: Any) -> list[bytes]:
        return list(row_digests(plain_parts(x), np.zeros(count_records(x), dtype=np.int64)).tolist())

    def _check_budget(self, more: int, *, plan: str = "") -> None:
        if self.budget is None or self.asked + more <= self.budget:
            return
        needs = f"the audit needs {plan}, and {_AGAIN} are asked twice" if plan else f"{more} more are needed"
        raise InputError(
            f"budget: {self.budget} records, {self.asked} of them asked; {needs}. Give budget={self.asked + more}, or "
            f"audit fewer records."
        )

    # asking

    def _answered(self, x: Any, rows: NDArray[np.int64]) -> Iterator[tuple[list[int], list[Any]]]:
        """Rows and their answers as they come, some requests at a time."""
        waiting = [rows[start : start + self._most] for start in range(0, len(rows), self._most)][::-1]
        running: dict[Future[Any], NDArray[np.int64]] = {}
        fault: InputError | None = None  # told when the answers that are on their way are kept
        with ThreadPoolExecutor(self.workers) as pool:
            while running or (waiting and fault is None):
                while waiting and fault is None and len(running) < self.workers:
                    part = waiting.pop()
                    running[pool.submit(self._patiently, select(x, part), len(part))] = part
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for one in done:
                    part = running.pop(one)
                    try:
                        answers = one.result()
                    except InputError as error:
                        fault = error
                        continue
                    if answers is None:  # too large a request
                        self._most = max(1, min(self._most, len(part) // 2))
                        waiting += [part[at : at + self._most] for at in range(0, len(part), self._most)][::-1]
                        continue
                    self.asked += len(part)
                    yield part.tolist(), answers
        if fault is not None:
            raise fault

    def _patiently(self, batch: Any, count: int) -> list[Any] | None:
        """The answers about one batch after as many attempts as it takes; None if it is too large for the model."""
        for attempt in range(1, self.attempts + 1):
            self._take_turn()
            try:
                return self._once(batch, count)
            except _Refused as refused:
                if refused.status == _TOO_LARGE and count > 1:
                    return None
                if not refused.passing or attempt == self.attempts:
                    times = f" after {attempt} attempts" if attempt > 1 else ""
                    raise InputError(f"model: it did not answer over the wire{times}: {refused}") from None
                pause = min(_LONGEST, self.wait * 2 ** (attempt - 1)) if refused.after is None else refused.after
                with self._lock:  # a busy server is left alone by all workers, a lost connection by this one
                    if refused.status == 429:
                        self._not_before = max(self._not_before, time.monotonic() + pause)
                time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _take_turn(self) -> None:
        """Wait until the rate allows another request."""
        with self._lock:
            self.requests += 1
            now = time.monotonic()
            turn = max(now, self._not_before)
            self._not_before = turn + (1 / self.rate if self.rate else 0.0)
        time.sleep(turn - now)

    def _once(self, batch: Any, count: int) -> list[Any]:
        try:
            answer = self._post(batch) if isinstance(self.ask, str) else self.ask(batch)
        except (_Refused, InputError):
            raise
        except Exception as error:  # of any client
            status = getattr(error, "status_code", None) or getattr(error, "code", None)
            status = status if isinstance(status, int) else 0
            lost = isinstance(error, OSError) or type(error).__name__.endswith(("Timeout", "TimeoutError"))
            headers = getattr(getattr(error, "response", error), "headers", None) or {}
            what, after = first_line(error), _seconds(headers.get("Retry-After"))
            if isinstance(error, urllib.error.HTTPError):
                what = f"HTTP {status}.{self._advice(status)}"
                error.close()
            passing = status in _PASSING or (lost and not status)
            raise _Refused(what, status=status, after=after, passing=passing) from None
        rows = _rows(answer)
        if len(rows) != count:
            raise InputError(f"model: it answered {count} records with {len(rows)} rows; expected one row per record.")
        return rows

    def _post(self, batch: Any) -> Any:
        url = str(self.ask)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {os.environ.get(self.key, '')}"
        body = json.dumps({"inputs": _plain(batch)}).encode()
        request = urllib.request.Request(url, data=body, headers=headers, method="POST")  # noqa: S310 (checked above)
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=self.timeout) as reply:
                return json.loads(reply.read())
        except json.JSONDecodeError:
            raise _Refused("its answer is not JSON.", passing=True) from None

    def _advice(self, status: int) -> str:
        if status in (401, 403):
            return f" Is the key in {self.key or 'an environment variable, key=…,'} right?"
        if 300 <= status < 400:
            return " It points to another address; give that one."
        return {404: " Is the address right?", _TOO_LARGE: " A single record is too large for it."}.get(status, "")

    # keeping

    def _load(self, path: Path) -> None:
        try:
            with contextlib.closing(sqlite3.connect(path, timeout=_PATIENCE)) as file:
                file.execute("CREATE TABLE IF NOT EXISTS answers (record TEXT PRIMARY KEY, answer TEXT NOT NULL)")
                found = file.execute("SELECT record, answer FROM answers").fetchall()
                file.commit()
            for record, answer in found:
                json.loads(answer)
                self._kept[record.encode()] = answer
        except (sqlite3.Error, ValueError, TypeError, AttributeError) as error:
            raise InputError(
                f"cache: {path}: is no file of answers ({first_line(error)}). Name another file."
            ) from error

    def _keep(self, digests: Sequence[bytes], answers: Sequence[Any]) -> None:
        new = {digest: json.dumps(_plain(answer)) for digest, answer in zip(digests, answers, strict=True)}
        self._kept |= new
        if self.cache is None:
            return
        with contextlib.closing(sqlite3.connect(self.cache, timeout=_PATIENCE)) as file:
            file.executemany(
                "INSERT OR REPLACE INTO answers VALUES (?, ?)", [(one.decode(), text) for one, text in new.items()]
            )
            file.commit()


def _seconds(text: Any) -> float | None:
    """A Retry-After in seconds; a date is not read, and the usual wait holds."""
    try:
        return min(_LONGEST, max(0.0, float(text)))
    except (TypeError, ValueError):
        return None


def _plain(values: Any) -> Any:
    """Records or answers as JSON holds them: a table as one dict per row."""
    if hasattr(values, "to_dict") and hasattr(values, "columns"):
        return json.loads(values.to_json(orient="records")) if hasattr(values, "to_json") else values.to_dicts()
    if isinstance(values, Mapping):
        return {str(name): _plain(value) for name, value in values.items()}
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return values.tolist() if hasattr(values, "tolist") else values


def _rows(answer: Any) -> list[Any]:
    """One answer per record, from a list or array of them, or a mapping that names them."""
    if isinstance(answer, Mapping):
        named = [name for name in _NAMES if name in answer]
        if not named and len(answer) != 1:
            keys = ", ".join(map(repr, answer)) or "nothing"
            raise InputError(
                f"model: it answered with {keys}; expected one row per record, or {_NAMES[0]!r}. Give a function "
                f"batch -> answers that takes them out."
            )
        answer = answer[named[0] if named else next(iter(answer))]
    answer = _plain(answer)
    if not isinstance(answer, list | tuple):
        raise InputError(f"model: it answered with {type(answer).__name__}; expected a list with one row per record.")
    return list(answer)


def _stacked(rows: list[Any]) -> NDArray[Any]:
    """Rows as numbers [B, …]; others, such as labels or lists of dicts, as objects [B]."""
    if all(isinstance(row, list | float | int) and not isinstance(row, bool) for row in rows):
        with contextlib.suppress(ValueError, TypeError):
            return np.asarray(rows, dtype=np.float64)
    if all(isinstance(row, str) for row in rows):
        return np.array(rows)
    found = np.empty(len(rows), dtype=object)
    found[:] = rows
    return found
