"""What ``glasshouse doctor`` looks at: one function per subject, each gives facts about this machine."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import joblib
import torch

from glasshouse.audit_steps import library_versions
from glasshouse.cli.extras import extras, installed_version
from glasshouse.datasets.dataset import data_root
from glasshouse.errors import first_line

__all__ = ["CHECKS", "Fact", "checkup"]

_BROWSERS = ("firefox", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "safari", "msedge")
_GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Fact:
    """Something about this machine.

    Args:
        subject: what it is about.
        status: ``"ok"``; ``"absent"``, which is no fault; or ``"fault"``, which stops some audits.
        found: what is there.
        hint: what to do to get it, where something is missing.

    Example:
        >>> Fact(subject="cores", status="ok", found="8").line
        'ok      cores: 8'
    """

    subject: str
    status: Literal["ok", "absent", "fault"]
    found: str
    hint: str = ""

    @property
    def line(self) -> str:
        """One line for a terminal."""
        return f"{self.status:<8}{self.subject}: {self.found}" + (f" {self.hint}" if self.hint else "")


def checkup() -> list[Fact]:
    """All facts, in the order of `CHECKS`."""
    return [fact for check in CHECKS for fact in check()]


def _libraries() -> Iterator[Fact]:
    for name, version in library_versions().items():
        yield Fact(subject=name, status="ok", found=version)
    yield Fact(subject="system", status="ok", found=platform.platform())


def _extras() -> Iterator[Fact]:
    try:
        known = extras()
    except importlib.metadata.PackageNotFoundError:
        hint = "Run: pip install . in the source tree."
        yield Fact(subject="extras", status="fault", found="not known, since Glasshouse is not installed.", hint=hint)
        return
    for extra, packages in sorted(known.items()):
        versions = {package: installed_version(package) for package in packages}
        there = ", ".join(found for found in versions.values() if found)
        if missing := [package for package, found in versions.items() if found is None]:
            found = f"without {', '.join(missing)}." + (f" There: {there}." if there else "")
            hint = f"Run: pip install 'glasshouse[{extra}]'"
            yield Fact(subject=f"extra {extra}", status="absent", found=found, hint=hint)
        else:
            yield Fact(subject=f"extra {extra}", status="ok", found=there)


def _accelerator() -> Iterator[Fact]:
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            about = torch.cuda.get_device_properties(number)
            found = f"{about.name}, {about.total_memory / _GIB:.0f} GiB"
            yield Fact(subject=f"GPU {number}", status="ok", found=found)
    else:
        yield Fact(subject="GPU", status="absent", found="torch finds none; everything runs on the CPU.")


def _size() -> Iterator[Fact]:
    yield Fact(subject="cores", status="ok", found=str(joblib.cpu_count()))
    memory = _memory()
    if memory is None:
        yield Fact(subject="memory", status="absent", found="this system does not say how much there is.")
    else:
        yield Fact(subject="memory", status="ok", found=f"{memory / _GIB:.1f} GiB")


def _memory(limit: Path = Path("/sys/fs/cgroup/memory.max")) -> int | None:
    """Bytes of memory: the machine's, or the container's if that is less; None if the system does not say."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    try:
        return min(machine, int(limit.read_text()))
    except (OSError, ValueError):  # no such file, or the word max
        return machine


def _browser() -> Iterator[Fact]:
    found = next((place for name in _BROWSERS if (place := shutil.which(name))), None)
    if found is None:
        hint = "A report is one file that needs no network: open it on another machine."
        yield Fact(subject="browser", status="absent", found="none on the path.", hint=hint)
    else:
        yield Fact(subject="browser", status="ok", found=found)


def _data() -> Iterator[Fact]:
    place = data_root()
    told = "GLASSHOUSE_DATA" if "GLASSHOUSE_DATA" in os.environ else "GLASSHOUSE_DATA is not set"
    subject = "data folder"
    if place.is_dir():
        yield Fact(subject=subject, status="ok", found=f"{place.resolve()} ({told})")
    else:
        hint = "Only data sets by name, such as cora, need it: set GLASSHOUSE_DATA to their folder."
        yield Fact(subject=subject, status="absent", found=f"{place}: there is no such folder ({told}).", hint=hint)


def _kernels() -> Iterator[Fact]:
    """Where compiled code is kept."""
    subject = "compiled kernels"
    if any(importlib.util.find_spec(module) is None for module in ("numba", "torch_geometric")):
        yield Fact(subject=subject, status="absent", found="not needed without the extra graph.")
        return
    try:
        from glasshouse.graph.rule.two_layers.kernels import kernel_folder

        folder, cause = kernel_folder(), "the user has no private folder that can be written"
    except Exception as error:
        folder, cause = None, first_line(error)
    if folder is not None:
        yield Fact(subject=subject, status="ok", found=f"kept in {folder}")
    else:
        hint = "Set XDG_CACHE_HOME to a folder that can be written."
        yield Fact(subject=subject, status="fault", found=f"cannot be kept: {cause}.", hint=hint)


CHECKS: tuple[Callable[[], Iterator[Fact]], ...] = (
    _libraries,
    _extras,
    _accelerator,
    _size,
    _browser,
    _data,
    _kernels,
)
