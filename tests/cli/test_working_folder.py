"""Nothing in the working folder decides: no command opens a file there that the user did not name, or runs its code.

The folder is a stranger's. It holds an audit file, and beside it whatever Python or a library might look for.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import caching

from glasshouse.graph.rule.two_layers import kernels

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells which files are opened")

# modules of these names are poisoned: what the commands and their workers import, and what Python itself looks for
MODULES = """
    argparse cloudpickle conftest contextlib joblib llvmlite multiprocessing numba numpy pandas pyarrow runpy scipy
    setup sitecustomize sklearn torch torch_geometric typing usercustomize yaml _classes _ops
"""
FILES = """
    .condarc .env .matplotlibrc .netrc .python-version .rayignore matplotlibrc pip.conf pyproject.toml pytest.ini
    setup.cfg data/amazon/Photo/raw/amazon_electronics_photo.npz data/digits.npz mlruns/meta.yaml __pycache__/numpy.pyc
"""
PEOPLE = "age,city,income\n" + "".join(f"{20 + i % 40},{'abc'[i % 3]},{i * 7 % 2}\n" for i in range(120))
AUDIT = """
data: {name: file, path: people.csv, label: income}
trainer: {kind: sklearn, estimator: GaussianNB}
shadows: 2
attacks: [base]
"""
COMMANDS = (
    "audit audit.yaml --out runs/table --workers 2",
    "score evidence.npz -a base --out runs/score",
    "report runs/table",
    "audit --nodes 30 --shadows 2 -a g-base --out runs/graph",
)
# the files that these commands name, and the folder in which they put runs
NAMED = ("audit.yaml", "people.csv", "evidence.npz", "runs")

# One process imports the command line in the folder and forks a child for each command. Python tells of every file that
# it opens and every folder that it lists, whether or not they exist; names are as they were given.
SCRIPT = r"""
import os, sys

def look(event, given):
    if event in ("open", "os.listdir", "os.scandir") and isinstance(given[0], (str, bytes, os.PathLike)):
        path = os.path.abspath(os.fsdecode(given[0]))
        if path == folder or path.startswith(folder + os.sep):
            os.write(seen, (event + " " + os.path.relpath(path, folder) + "\n").encode())

folder, seen, saying = os.getcwd(), int(sys.argv[1]), int(sys.argv[2])
sys.addaudithook(look)
import importlib
entry = importlib.import_module("glasshouse.cli.app")
import glasshouse.cli.audit, glasshouse.cli.saved_runs, sklearn.ensemble  # as every command does, once for all of them

for line in sys.stdin:
    child = os.fork()
    if not child:
        os.dup2(saying, 1), os.dup2(saying, 2)
        sys.argv = ["glasshouse", *line.split()]
        try:
            entry.main()
        except SystemExit as error:
            if "graph" in line:  # numba is imported: now a kernel of ours, and a function of somebody else
                import numpy
                from glasshouse.graph.sampling.posterior import log_ratio
                sys.path.insert(0, "../library")
                from mine import double
                os.write(saying, f"{log_ratio(numpy.array([1.0, 2.0]), numpy.array([True]))} {double(2)}".encode())
            os._exit(error.code or 0)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


class Poison:
    """An object whose pickle makes a file when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.mark), "w")


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """The file that exists once anything of the stranger's was run."""
    return tmp_path / "ran"


@pytest.fixture
def folder(tmp_path: Path, mark: Path) -> Path:
    """A stranger's folder."""
    place = tmp_path / "theirs"
    place.mkdir()
    for name in MODULES.split():
        (place / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r})\nraise ImportError({name!r})\n")
    for name in FILES.split():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("nothing")
    (place / "people.csv").write_text(PEOPLE)
    (place / "audit.yaml").write_text(AUDIT)
    losses = np.random.default_rng(0).exponential(size=(5, 40))
    members = np.arange(160).reshape(4, 40) % 2 == np.arange(4)[:, None] % 2
    np.savez(place / "evidence.npz", target_loss=losses[0], shadow_loss=losses[1:], shadow_members=members)
    poisoned_kernels(place, mark)
    return place


def poisoned_kernels(folder: Path, mark: Path) -> None:
    """Settings of numba that name a folder of lists of compiled code, in which every list makes a file when it is read.

    One for each function in a file with kernels of ours, under the name that numba looks for, and for one of ``mine``.
    """
    (folder / ".numba_config.yaml").write_text(f"cache_dir: {folder / 'kernels'}\n")
    mine = folder.parent / "library" / "mine.py"
    mine.parent.mkdir()
    mine.write_text("import numba\n@numba.njit(cache=True)\ndef double(x):\n    return 2 * x\n")
    locator: Any = caching._CacheLocator  # numba has no types
    ours = [file for source in kernels._SOURCES for file in source.glob("*.py")]
    for file in (mine, *ours):
        place = folder / "kernels" / locator.get_suitable_cache_subpath(str(file))
        place.mkdir(parents=True, exist_ok=True)
        for number, line in enumerate(file.read_text().splitlines()):  # of the decorator, counted from 1
            if line.startswith("def "):
                name = f"{file.stem}.{line[4:].split('(')[0]}-{number}.py{sys.version_info[0]}{sys.version_info[1]}.nbi"
                (place / name).write_bytes(pickle.dumps(Poison(mark)))


@contextmanager
def watched(folder: Path) -> Iterator[list[str]]:
    """A list that is filled at the end with what was opened in a folder and those in it, by any process or library."""
    system = ctypes.CDLL(None, use_errno=True)
    queue = system.inotify_init1(os.O_NONBLOCK)
    places = {
        system.inotify_add_watch(queue, os.fsencode(place), 0x20): place  # IN_OPEN
        for place in (folder, *(place for place in folder.rglob("*") if place.is_dir()))
    }
    opened: list[str] = []
    try:
        yield opened
        content = os.read(queue, 1 << 20)
    except BlockingIOError:
        content = b""
    finally:
        os.close(queue)
    while content:
        number, _, _, length = struct.unpack("iIII", content[:16])
        opened.append(str((places[number] / content[16 : 16 + length].rstrip(b"\0").decode()).relative_to(folder)))
        content = content[16 + length :]


def test_a_command_opens_nothing_in_the_working_folder_that_was_not_named(folder: Path, mark: Path) -> None:
    (folder / "runs").mkdir()  # else the folder itself is searched for what killed runs left there
    names, saying = folder.parent / "opened", folder.parent / "said"
    with names.open("w") as seen, saying.open("w") as said, watched(folder) as opened:
        run = subprocess.run(  # noqa: S603
            [sys.executable, "-P", "-c", SCRIPT, str(seen.fileno()), str(said.fileno())],
            input="\n".join(COMMANDS),
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            pass_fds=[seen.fileno(), said.fileno()],
            env={name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"},
            check=True,
        )
    assert run.stdout.split() == ["0"] * len(COMMANDS), saying.read_text()
    assert saying.read_text().endswith("1.0 4"), "kernels run"
    told = {line.split(" ", 1)[1] for line in names.read_text().splitlines()}
    assert set(NAMED) - {"runs"} <= told, "what is named is opened, and told of"
    assert {name for name in told | set(opened) if name.split("/")[0] not in NAMED} == set()
    assert not mark.exists()


def test_the_same_folder_does_harm_where_numba_is_imported_without_care(folder: Path, mark: Path) -> None:
    """So the lists above are where numba looks for them."""
    script = "import sys; sys.path.insert(0, '../library'); import mine; mine.double(2)"
    subprocess.run([sys.executable, "-P", "-c", script], cwd=folder, capture_output=True, check=False)  # noqa: S603
    assert mark.exists()
