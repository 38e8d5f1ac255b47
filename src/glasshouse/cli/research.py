"""``glasshouse bench``: an attack of the user's own beside all of ours; ``reproduce``: the paper's experiments."""

from __future__ import annotations

import importlib.util
import itertools
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from markupsafe import Markup
from rich.console import Console
from scipy.special import stdtrit

from glasshouse.attacks import attack_names
from glasshouse.attacks.attack import find_attack
from glasshouse.auditing.targets import SeveralTargets, audit_targets
from glasshouse.cli.app import app, interruptible, say
from glasshouse.cli.steps import Quiet, Seed
from glasshouse.config.trust import reported
from glasshouse.core.errors import InputError
from glasshouse.core.registry import Registry
from glasshouse.core.table import Table
from glasshouse.data.named import digits
from glasshouse.evaluation import AcrossTargets
from glasshouse.evaluation.metrics import mean_over
from glasshouse.io.caches import keep_code_private
from glasshouse.io.files import sharing, write_file
from glasshouse.report.figures import FIGURES, Figure
from glasshouse.report.html import picture_style
from glasshouse.report.pictures.axes import element, picture
from glasshouse.report.pictures.scores import Curve, roc_picture
from glasshouse.report.terminal import booktabs, latex_text

_CURVES = 6  # of one panel; the palette has as many colours
_WIDTH, _HEIGHT, _HEAD = 440, 400, 24  # of one panel, and of the line above it


class Bench(NamedTuple):
    """Data with a way to train on it."""

    title: str
    load: Callable[[], tuple[Any, Any]]  # data and trainer


def _table() -> tuple[Any, Any]:
    from sklearn.ensemble import RandomForestClassifier

    return digits().population, RandomForestClassifier(n_estimators=50)


def _graph() -> tuple[Any, Any]:
    from glasshouse.graph import GNNTrainer, citation_graph

    return citation_graph(nodes=1000), GNNTrainer(architecture="gcn", epochs=50, device="cpu")


BENCHES: Registry[Bench] = Registry("a benchmark")
BENCHES.add("digits", Bench("digits, forest", _table))
BENCHES.add("graph", Bench("citation graph, GCN", _graph))


def registered_by(file: Path) -> list[str]:
    """Run a user's file, and name the attacks that it registers."""
    known = set(attack_names())
    spec = importlib.util.spec_from_file_location(f"{__name__}.{file.stem}", file) if file.is_file() else None
    if spec is None or spec.loader is None:
        raise InputError(f"{file}: there is no such file of Python. Give the file that registers your attack.")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look for it there
    with reported(f"{file}: cannot be imported"):
        spec.loader.exec_module(module)
    mine = [name for name in attack_names() if name not in known]
    if not mine:
        raise InputError(f'{file}: registers no attack under a new name. Write @register("mine") above its class.')
    return mine


def rivals(*, graph: bool, shadows: int) -> list[str]:
    """Names of our attacks on records or nodes that can use a pool of losses or models and nothing else."""
    kinds = {name: find_attack(name) for name in attack_names(graph=graph) if name != "best"}
    return [
        name
        for name, kind in kinds.items()
        if not (kind.needs_public or kind.needs_trace or kind.needs_parts or kind.kind == "edges")
        and kind.least_models <= shadows
    ]


@app.command()
def bench(
    file: Annotated[Path, typer.Argument(help="Your file of Python that registers one attack or more.")],
    out: Annotated[Path, typer.Option(help="Folder for bench.tex and bench.svg.")] = Path("runs/bench"),
    attacks: Annotated[
        list[str] | None, typer.Option("--attack", "-a", help="Compare with this attack alone; may be repeated.")
    ] = None,
    on: Annotated[
        list[str] | None, typer.Option(help="digits or graph; may be repeated. Default: all that can be run here.")
    ] = None,
    targets: Annotated[int, typer.Option(min=2, help="Number of targets, for means and intervals.")] = 5,
    shadows: Annotated[int, typer.Option(min=2, help="Number of shadow models, shared by all targets.")] = 8,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Benchmark an attack of your own against all of ours, with intervals over several targets.

    The file is run as it is: by naming it you trust it. Writes a LaTeX table (booktabs) and a picture for a paper.
    """
    wanted = {name: BENCHES.find(name) for name in on or BENCHES.names()}
    keep_code_private()
    mine = registered_by(file)
    on_records = [name for name in mine if find_attack(name).kind == "records"]
    if not on:
        able = {"digits": bool(on_records), "graph": find_spec("torch_geometric") is not None}
        wanted = {name: one for name, one in wanted.items() if able[name]}
    if not wanted:
        raise InputError(f"{file}: {mine[0]} needs a graph. Run: pip install 'glasshouse[graph]'")
    options: dict[str, Any] = {"shadows": shadows, "targets": targets, "seed": seed}
    options["progress"] = False if quiet else None
    found: dict[str, SeveralTargets] = {}
    with interruptible(out):
        for name, one in wanted.items():
            own = mine if name == "graph" else on_records or mine
            others = attacks or rivals(graph=name == "graph", shadows=shadows)
            data, trainer = one.load()
            names = list(dict.fromkeys(own + others))
            found[one.title] = audit_targets(data, trainer=trainer, attacks=names, **options)
            say(f"{one.title}: means over {targets} targets ± 95 % interval, {shadows} shadow models")
            say(*rows(found[one.title].figures(), mine=mine), "")
    for file_name, text in (("bench.tex", latex(found)), ("bench.svg", picture_of(found, mine=mine))):
        say(f"Written: {write_file(out / file_name, text)}")


def _cell(figure: Figure, found: AcrossTargets, sign: str) -> str:
    """A mean with half of its 95 % interval (Student's t), which may reach below 0 or above 1."""
    reach = stdtrit(found.targets - 1, 0.975) * found.std / np.sqrt(found.targets)
    return f"{figure.number(found.mean)}{sign}{figure.number(reach)}"


def _shown(figures: Mapping[str, AcrossTargets]) -> list[Figure]:
    """The AUC and the TPR at each rate."""
    rates = [float(name.removeprefix("tpr@")) for name in figures if name.startswith("tpr@")]
    return [FIGURES["auc"], *(FIGURES["tpr@{}"].at(rate) for rate in rates)]


def _ranked(figures: Mapping[str, Mapping[str, AcrossTargets]]) -> list[str]:
    return sorted(figures, key=lambda name: -figures[name]["auc"].mean)


def rows(figures: Mapping[str, Mapping[str, AcrossTargets]], *, mine: Sequence[str]) -> list[str]:
    """The lines of a table, the best attack first; those of the user are marked."""
    shown = _shown(next(iter(figures.values())))
    names = _ranked(figures)
    columns = {one.heading: [_cell(one, figures[name][one.name], " ± ") for name in names] for one in shown}
    marked = [f"> {name}" if name in mine else f"  {name}" for name in names]
    return str(Table({"attack": marked, **columns})).splitlines()


def latex(found: Mapping[str, SeveralTargets]) -> str:
    """A table of all benchmarks (booktabs): mean ± half of the 95 % interval, the best mean of a column in bold."""
    figures = {name: several.figures() for name, several in found.items()}
    columns = [(name, one) for name, by in figures.items() for one in _shown(next(iter(by.values())))]
    best = {(name, one.name): max(by[one.name].mean for by in figures[name].values()) for name, one in columns}
    counts = [sum(one == name for one, _ in columns) for name in figures]
    titles = [rf"\multicolumn{{{count}}}{{c}}{{{name}}}" for name, count in zip(figures, counts, strict=True)]
    ends = np.cumsum([1, *counts]).tolist()
    lines = "".join(rf"\cmidrule(lr){{{first + 1}-{last}}}" for first, last in itertools.pairwise(ends))
    rows = []
    for attack in dict.fromkeys(attack for by in figures.values() for attack in _ranked(by)):
        cells = [latex_text(attack)]
        for name, one in columns:
            figure = figures[name].get(attack, {}).get(one.name)
            text = "" if figure is None else _cell(one, figure, r" \pm ")
            bold = figure is not None and figure.mean == best[name, one.name]
            cells.append(rf"$\mathbf{{{text}}}$" if bold else f"${text}$" if text else "--")
        rows.append(cells)
    heads = ["attack", *(one.heading.replace("%", r"\%") for _, one in columns)]
    return booktabs(heads, rows, above=[" & ".join(["", *titles]) + r" \\", lines])


def mean_curve(several: SeveralTargets, attack: str, *, band: bool) -> Curve:
    """The mean ROC over targets, with a band or without: the interval of its TPR at each FPR."""
    metrics = [one.outcomes[attack].metrics for one in several.results if attack in one.outcomes]
    curves = [one.curve for one in metrics if one is not None]
    members, outside = (min(getattr(one, name) for one in curves) for name in ("members", "non_members"))
    grid = np.unique(np.rint(np.geomspace(1, outside, 100))) / outside
    tprs = [[one.tpr[one.point_at(fpr)] for one in curves] for fpr in (0.0, *grid)]
    means = [mean_over(values, several.confidence) for values in tprs]
    middle = tuple(one.mean for one in means)
    low, high = (tuple(getattr(one.interval, end) for one in means) if band else middle for end in ("low", "high"))
    return Curve((0.0, *grid.tolist()), middle, low, high, members, outside)


def picture_of(found: Mapping[str, SeveralTargets], *, mine: Sequence[str]) -> Markup:
    """One panel for each benchmark: ROC on logarithmic axes, of the user's attacks and of the best of ours."""
    width, height = _WIDTH * len(found), _HEIGHT + _HEAD
    parts = [Markup("<style>{}</style>").format(Markup(_for_paper(picture_style())))]  # noqa: S704 (our own sheet)
    parts.append(element("rect", width=width, height=height, fill="#ffffff"))
    for number, (name, several) in enumerate(found.items()):
        order = sorted(_ranked(several.figures()), key=lambda one: one not in mine)[:_CURVES]
        curves = {attack: mean_curve(several, attack, band=attack in mine) for attack in order}
        place = f'<svg x="{_WIDTH * number}" y="{_HEAD}" width="{_WIDTH}" height="{_HEIGHT}" '
        parts.append(element("text", name, x=_WIDTH * (number + 0.5), y=16, text_anchor="middle"))
        parts.append(Markup(roc_picture(curves).replace(Markup("<svg "), Markup(place), 1)))  # noqa: S704
    return picture(parts, width=width, height=height, label="Mean ROC curves over targets")


def _for_paper(style: str) -> str:
    """The style sheet in its light colours, written out: programs that make a PDF know no variables."""
    colours = dict(re.findall(r"(--\w+): (#\w+);", style.partition("@media")[0]))
    lines = []
    for line in style.splitlines():
        if "var(--c)" in line:  # the colour of a curve, by its class
            lines += [line.replace("svg .", f"svg .s{n}.").replace("--c", f"--s{n}") for n in range(_CURVES)]
        elif line.startswith("svg ") and "--c:" not in line:
            lines.append(line)
    return re.sub(r"var\((--\w+)\)", lambda one: colours[one[1]], "\n".join(lines))


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help="Name of an experiment, or all; an unknown name lists them.")],
    preset: Annotated[str, typer.Option(help="Size of the experiment: quick or paper.")] = "quick",
    dataset: Annotated[list[str] | None, typer.Option(help="Data set to use; may be repeated.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for CSV, pictures and Markdown.")] = Path("results"),
    pools: Annotated[Path, typer.Option(help="Folder that keeps models and scores.")] = Path("runs/pools"),
    part: Annotated[str | None, typer.Option(help="Run only this part of the experiment, such as gibbs.")] = None,
    seed: Seed = 0,
    workers: Annotated[
        int, typer.Option(min=1, help="Number of processes that attack targets of a graph in parallel.")
    ] = 1,
    lanes: Annotated[int, typer.Option(min=1, help="With all: number of data sets that run in parallel.")] = 1,
    quiet: Quiet = False,
) -> None:
    """Run an experiment of the paper and print our figures next to those of the paper."""
    _find_experiments()
    import glasshouse_experiments as experiments

    options: dict[str, Any] = {"preset": preset, "datasets": dataset or None, "out": out, "pools": pools, "seed": seed}
    options |= {"workers": workers, "progress": False if quiet else None}
    console = Console(width=None if sys.stdout.isatty() else 160)
    every = name == "all"
    if every and part is not None:
        raise InputError("--part: all runs every part; give the name of one experiment.")
    if lanes > 1 and not every:
        raise InputError("--lanes: only all runs data sets in parallel; for one experiment, use --workers.")
    with sharing():  # tables of public data
        if every:
            found = experiments.reproduce_all(lanes=lanes, **options)
        else:
            found = iter([(name, experiments.reproduce(name, part=part, **options))])
        for title, table in found:
            experiments.show(table, title=f"{title}, preset {preset}", console=console)


def _find_experiments() -> None:
    """Make the package of the paper's experiments importable; the one beside ``src`` in a source tree comes first."""
    beside = Path(__file__).resolve().parents[3] / "experiments"
    if (beside / "glasshouse_experiments").is_dir():
        sys.path.insert(0, str(beside))
    elif find_spec("glasshouse_experiments") is None:
        raise InputError(
            "reproduce: the paper's experiments are not part of the installed package. In a source tree of Glasshouse, "
            "run: pip install ./experiments"
        )
