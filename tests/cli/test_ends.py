"""How a command ends, whatever becomes of its output, its memory or its process."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glasshouse import Evidence
from glasshouse.cli import main
from glasshouse.evidence.files import write_evidence
from tests.forked import Forks

# forks a child for each way to end
SCRIPT = r"""
import importlib, json, os, signal, sys, threading, time
from glasshouse.cli import audit, saved_runs
entry = importlib.import_module("glasshouse.cli.app")

def lost(how):
    if how == "closed":
        os.close(1)
    elif how == "full":
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    elif how == "nobody reads":
        end, start = os.pipe()
        os.close(end)
        os.dup2(start, 1)

def command(what):
    if what == "memory":
        def nothing(*_, **__):
            raise MemoryError
        entry.app = nothing
    elif what == "terminated":
        def slow(*_, **__):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        audit.audit_evidence = slow

for line in sys.stdin:
    asked = json.loads(line)
    end, start = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(start, 1), os.dup2(start, 2)
        for name in ("stdout", "stderr"):
            made = open(1 if name == "stdout" else 2, "w", encoding=asked["encoding"])
            setattr(sys, name, made), setattr(sys, f"__{name}__", made)
        lost(asked["output"]), command(asked["what"])
        sys.argv = ["glasshouse", *asked["arguments"]]
        try:
            entry.main()
        except SystemExit as error:
            code = error.code
        except BaseException as error:
            print(type(error), file=sys.stderr)
            code = 99
        try:
            sys.stdout.flush()
        except BaseException:
            code = 120
        os._exit(code)
    os.close(start)
    with open(end, "rb") as told:
        text = told.read()
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text.decode("latin-1")]), flush=True)
"""


@pytest.fixture(scope="module")
def ends(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs a command and gives its exit code and what it printed."""
    place = tmp_path_factory.mktemp("ends")
    random = np.random.default_rng(0)
    members = np.tile([[True, False], [False, True]], (2, 20))
    evidence = Evidence(
        target_loss=random.exponential(size=40), shadow_loss=random.exponential(size=(4, 40)), shadow_members=members
    )
    write_evidence(place / "e.npz", evidence, members=members[0])
    with forks.talking(SCRIPT, folder=place) as talk:

        def run(*arguments: str, what: str = "", output: str = "", encoding: str = "utf-8") -> tuple[int, str]:
            asked = {"arguments": arguments, "what": what, "output": output, "encoding": encoding}
            talk.stdin.write(json.dumps(asked) + "\n")
            talk.stdin.flush()
            code, told = json.loads(talk.stdout.readline())
            return code, told

        run.place = place  # type: ignore[attr-defined]
        yield run


@pytest.mark.parametrize("output", ["closed", "full", "nobody reads"])
def test_a_lost_output_changes_no_exit_code(ends: Any, output: str) -> None:
    assert ends("score", str(ends.place / "e.npz"), output=output) == (0, "")
    assert ends("attacks", output=output)[0] == 0
    code, told = ends("score", "no-such.npz", output=output)
    assert code == 2
    assert "no-such.npz" in told


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_what_an_output_cannot_show_is_replaced(ends: Any, encoding: str) -> None:
    code, told = ends("score", str(ends.place / "e.npz"), encoding=encoding)
    assert code == 0
    assert "AUC" in told
    code, told = ends("score", str(ends.place / "ε日本.npz"), encoding=encoding)
    assert code == 2
    assert ".npz: there is no such file" in told


def test_too_little_memory_and_a_request_to_end_are_one_line(ends: Any) -> None:
    code, told = ends("score", str(ends.place / "e.npz"), what="memory")
    assert (code, len(told.splitlines())) == (2, 1)
    assert told.startswith("There is not enough memory.")
    code, told = ends("score", str(ends.place / "e.npz"), "--out", str(ends.place / "run"), what="terminated")
    assert (code, len(told.splitlines())) == (143, 1)
    assert told.startswith("Stopped. Nothing was written to")
    assert not (ends.place / "run").exists()
    assert not [name for name in os.listdir(ends.place) if name.startswith(".")]  # noqa: PTH208
    assert Path(ends.place / "e.npz").exists()


WATCHED = r"""
import json, os, sys
seen, begun = [], []
WORD = ("socket.connect", "socket.bind", "socket.getaddrinfo", "urllib.Request", "pickle.find_class", "os.system",
        "subprocess.Popen", "os.exec", "os.posix_spawn")
sys.addaudithook(lambda event, told: seen.append([event, str(told)[:80]]) if begun and event in WORD else None)
import importlib
from glasshouse.cli import audit, saved_runs
entry = importlib.import_module("glasshouse.cli.app")
begun.append(True)  # what libraries do when they are imported does not depend on a file
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["glasshouse", *arguments]
    try:
        entry.main()
    except SystemExit as error:
        assert error.code in (0, 4), arguments
import pickle, socket
pickle.loads(pickle.dumps(socket.socket))  # the watch itself works
sys.__stdout__.write(json.dumps(seen))
"""


def test_commands_that_read_files_unpickle_nothing_start_nothing_and_ask_nothing_of_the_network(
    forks: Forks, tmp_path: Path
) -> None:
    random = np.random.default_rng(0)
    members = np.tile([[True, False], [False, True]], (2, 20))
    losses = Evidence(
        target_loss=random.exponential(size=40), shadow_loss=random.exponential(size=(4, 40)), shadow_members=members
    )
    write_evidence(tmp_path / "e.npz", losses, members=members[0])
    (tmp_path / "risk.yaml").write_text("limits: [{figure: auc, most: 1.0}]\n")
    commands = [
        ["score", "e.npz", "--out", "run", "--quiet"],
        ["verify", "run"],
        ["report", "run"],
        ["appendix", "run"],
        ["check", "run", "--policy", "risk.yaml"],
    ]
    done = forks.run(WATCHED, json.dumps(commands), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout[done.stdout.rindex("[[") :])
    assert [event for event, _ in seen] == ["pickle.find_class"], seen  # of the line that tries the watch


def test_a_program_that_calls_a_command_keeps_its_own_handler_of_the_request_to_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(sys, "argv", ["glasshouse", "score", "no-such.npz"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert signal.getsignal(signal.SIGTERM) is before
    assert "no-such.npz" in capsys.readouterr().err
