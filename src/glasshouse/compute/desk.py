"""Where the workers of this machine ask for parcels: a socket of the process that waits for their results."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from typing import Any

__all__ = ["Address", "Desk", "ask_desk"]

_NUMBER = "number"


class Address(tuple[str, int, bytes]):
    """Host and port of a desk, and the secret without which it does not answer."""


class Desk:
    """Answers workers from memory, until it is closed: with parcels by key, and with a number for each worker.

    Nothing lies on a disk, and nothing that a worker sends is more than the name of a parcel.

    Example:
        >>> desk = Desk()
        >>> desk.parcels["7"] = b"bytes"
        >>> ask_desk(desk.address, "7"), ask_desk(desk.address, "number"), ask_desk(desk.address, "number")
        (b'bytes', b'0', b'1')
        >>> desk.close()
    """

    def __init__(self) -> None:
        self.parcels: dict[str, bytes] = {}
        self.numbers = 0  # given out so far
        self._secret = os.urandom(32)
        self._listener = Listener(("127.0.0.1", 0), backlog=128)  # the secret is asked for in a thread for each caller
        self._open = True
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def address(self) -> Address:
        """Where workers ask."""
        place: Any = self._listener.address
        return Address((str(place[0]), int(place[1]), self._secret))

    def close(self) -> None:
        """Answer nobody any more."""
        self._open = False
        with suppress(OSError, EOFError, AuthenticationError):  # it waits for a caller: be one
            Client(self.address[:2], authkey=self._secret).close()
        self._thread.join(timeout=5)
        self._listener.close()
        self.parcels.clear()

    def _serve(self) -> None:
        while self._open:
            with suppress(OSError, EOFError):
                line = self._listener.accept()
                threading.Thread(target=self._answer, args=(line,), daemon=True).start()

    def _answer(self, line: Connection[Any, Any]) -> None:
        # a worker that was killed, a stranger, or a worker that asks for what nobody waits for any more
        with suppress(OSError, EOFError, AuthenticationError, KeyError), line:
            deliver_challenge(line, self._secret)
            answer_challenge(line, self._secret)
            asked = line.recv_bytes(64).decode()
            if asked == _NUMBER:
                with self._lock:
                    found, self.numbers = str(self.numbers).encode(), self.numbers + 1
            else:
                found = self.parcels[asked]
            line.send_bytes(found)


def ask_desk(address: Address, what: str) -> bytes:
    """A parcel by its key, or this worker's ``"number"``, counted from 0."""
    host, port, secret = address
    with Client((host, port), authkey=secret) as line:
        line.send_bytes(what.encode())
        return line.recv_bytes()
