"""``glasshouse doctor``: what this machine has, and how to get the rest; ``attacks`` and ``datasets``: names to use."""

from __future__ import annotations

import importlib.metadata
import inspect
import json
import os
import platform
import re
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import joblib
import typer

from glasshouse.attacks import Attack, attack_names
from glasshouse.attacks.attack import find_attack
from glasshouse.auditing.steps import library_versions
from glasshouse.cli.app import app
from glasshouse.cli.steps import Json
from glasshouse.config import data_names
from glasshouse.core import optional
from glasshouse.core.errors import first_line
from glasshouse.data.named import data_root

_FOR_DEVELOPERS = ("dev", "docs")
_MODULES = {"mlflow-skinny": "mlflow", "pillow": "PIL"}  # where the module has another name than the package
_REQUIREMENT = re.compile(r"""^(?P<package>[\w.-]+).*;.*extra == ['"](?P<extra>[\w-]+)['"]""")


def extras() -> dict[str, list[str]]:
    """Packages of Glasshouse by the name of the extra that needs them; without those that are for developers."""
    found: dict[str, list[str]] = {}
    for match in filter(None, map(_REQUIREMENT.match, importlib.metadata.requires("glasshouse") or [])):
        if match["extra"] not in _FOR_DEVELOPERS:
            found.setdefault(match["extra"], []).append(match["package"])
    return found


def installed_version(package: str) -> str | None:
    """A package with its version, or another that brings the same module, such as xgboost-cpu; None without either."""
    if version := optional.installed_version(package):
        return f"{package} {version}"
    module = _MODULES.get(package, package.replace("-", "_"))
    if find_spec(module) is None:
        return None
    others = importlib.metadata.packages_distributions().get(module, [])
    return f"{others[0]} {importlib.metadata.version(others[0])}" if others else f"{package} (version not known)"


_BROWSERS = ("firefox", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "safari", "msedge")
_GIB = 2**30


class Fact(NamedTuple):
    """Something about this machine; what is absent is no fault, and a fault stops some audits."""

    subject: str
    status: Literal["ok", "absent", "fault"]
    found: str
    hint: str = ""  # what to do to get it, where something is missing

    @property
    def line(self) -> str:
        """One line for a terminal."""
        return f"{self.status:<8}{self.subject}: {self.found}" + (f" {self.hint}" if self.hint else "")


def _libraries() -> Iterator[Fact]:
    for name, version in library_versions().items():
        yield Fact(name, "absent" if version == "not installed" else "ok", version)
    yield Fact("system", "ok", platform.platform())


def _extras() -> Iterator[Fact]:
    try:
        known = extras()
    except importlib.metadata.PackageNotFoundError:
        hint = "Run: pip install . in the source tree."
        yield Fact("extras", "fault", "not known, since Glasshouse is not installed.", hint)
        return
    for extra, packages in sorted(known.items()):
        versions = {package: installed_version(package) for package in packages}
        there = ", ".join(found for found in versions.values() if found)
        if missing := [package for package, found in versions.items() if found is None]:
            found = f"without {', '.join(missing)}." + (f" There: {there}." if there else "")
            yield Fact(f"extra {extra}", "absent", found, f"Run: pip install 'glasshouse[{extra}]'")
        else:
            yield Fact(f"extra {extra}", "ok", there)


def _accelerator() -> Iterator[Fact]:
    try:
        import torch
    except ImportError:
        hint = "Run: pip install 'glasshouse[torch]'"
        yield Fact("GPU", "absent", "not checked, since torch is not installed.", hint)
        return
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            about = torch.cuda.get_device_properties(number)
            yield Fact(f"GPU {number}", "ok", f"{about.name}, {about.total_memory / _GIB:.0f} GiB")
    else:
        yield Fact("GPU", "absent", "torch finds none; everything runs on the CPU.")


def _size() -> Iterator[Fact]:
    yield Fact("cores", "ok", str(joblib.cpu_count()))
    unknown, memory = Fact("memory", "absent", "this system does not report how much there is."), _memory()
    yield unknown if memory is None else Fact("memory", "ok", f"{memory / _GIB:.1f} GiB")


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
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    hint = "A report is one file that needs no network: open it on another machine."
    yield Fact("browser", "ok", found) if found else Fact("browser", "absent", "none on the PATH.", hint)


def _data() -> Iterator[Fact]:
    place = data_root()
    told = "GLASSHOUSE_DATA" if "GLASSHOUSE_DATA" in os.environ else "GLASSHOUSE_DATA is not set"
    hint = "Only data sets by name, such as cora, need it: set GLASSHOUSE_DATA to their folder."
    if place.is_dir():
        yield Fact("data folder", "ok", f"{place.resolve()} ({told})")
    else:
        yield Fact("data folder", "absent", f"{place}: there is no such folder ({told}).", hint)


def _kernels() -> Iterator[Fact]:
    """Where compiled code is kept."""
    subject = "compiled kernels"
    if any(find_spec(module) is None for module in ("numba", "torch_geometric")):
        yield Fact(subject, "absent", "not needed without the extra graph.")
        return
    try:
        from glasshouse.graph.rule.two_layers.kernels import kernel_folder

        folder, cause = kernel_folder(), "the user has no private folder that can be written"
    except Exception as error:
        folder, cause = None, first_line(error)
    hint = "Set XDG_CACHE_HOME to a folder that can be written."
    lost = Fact(subject, "fault", f"cannot be kept: {cause}.", hint)
    yield lost if folder is None else Fact(subject, "ok", f"kept in {folder}")


@app.command()
def doctor(as_json: Json = False) -> None:
    """Show versions, extras, GPU, cores, memory, browser and folders, and how to install what is missing."""
    checks = (_libraries, _extras, _accelerator, _size, _browser, _data, _kernels)
    facts = [fact for check in checks for fact in check()]
    if as_json:
        typer.echo(json.dumps([fact._asdict() for fact in facts], ensure_ascii=False))
        return
    typer.echo("\n".join(fact.line for fact in facts))
    faults = sum(fact.status == "fault" for fact in facts)
    typer.echo("\nNo problems found." if not faults else f"\n{faults} of these must be fixed for some audits.")


_NO_GRAPH = "  none here: the extra `graph` is not installed. Run: pip install 'glasshouse[graph]'"


@app.command()
def attacks() -> None:
    """List the attacks: what each is, needs and costs; those that need a graph come last."""
    for name in attack_names() if _graph_installed() else attack_names(graph=False):
        kind = find_attack(name)
        about = (inspect.getdoc(kind) or "").partition("\n")[0]
        typer.echo(f"{name}\n    {about}\n    {_needs(kind)}\n")
    if not _graph_installed():
        typer.echo(_NO_GRAPH)


def _needs(attack: type[Attack[Any]]) -> str:
    """What an attack needs and costs, in two short sentences."""
    graph, reference = attack.kind == "graph", "reference" in getattr(attack, "looks_at", ())
    needs = {
        "a graph": graph,
        "shadow models" if attack.least_models else "no shadow model": True,
        "the probabilities of all classes": attack.needs_logits,
        "records known to be outside": attack.needs_public,
        "losses from the training": attack.needs_trace,
        "a loss with parts": attack.needs_parts,
        "the model before fine-tuning": reference,
    }
    cost = "two queries per record, one of them to the model before fine-tuning"
    if attack.least_models:
        learning = "" if attack.quick_simulation else ", and learning from simulated targets"
        cost = "queries about sampled graphs, for each model" if graph else f"one query per record and model{learning}"
    elif not reference:
        cost = "one query per record"
    return f"Needs {' and '.join(name for name, needed in needs.items() if needed)}. Costs {cost}."


@app.command()
def datasets() -> None:
    """List the names of the data sets for files."""
    typer.echo("data: {name: …}")
    for name, about in data_names().items():
        typer.echo(f"  {name:<10}{about}")
    typer.echo("\ngraph: {name: …}")
    if not _graph_installed():
        typer.echo(_NO_GRAPH)
        return
    from glasshouse.graph.data.load import graph_names

    typer.echo("\n".join(f"  {name}" for name in graph_names()))
    typer.echo("  torch_geometric:CLASS or torch_geometric:CLASS:NAME, or your own my_graph.npz")


def _graph_installed() -> bool:
    return find_spec("torch_geometric") is not None
