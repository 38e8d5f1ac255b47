"""Scores, thresholds and metrics of every attack with fixed seeds, as digests: made by two versions, and compared.

A change that should move code and nothing else is held against the version before it::

    python tests/same_bytes.py write /tmp/before.json        # in a checkout of the version before
    python tests/same_bytes.py write /tmp/after.json         # in this one, on the same machine
    python tests/same_bytes.py compare /tmp/before.json /tmp/after.json

``--small`` takes small data, as the tests do. Cora is left out where its files are not under ``GLASSHOUSE_DATA``.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import inspect
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier

import glasshouse
import glasshouse.graph
from glasshouse import Attacker, Evaluation
from glasshouse.auditing.result import AuditResult
from glasshouse.data import random_subsets
from glasshouse.data.named import load_dataset
from glasshouse.training import TorchTrainer, mlp

# a graph's attacks that were called otherwise before they had one prefix
RENAMED = {"classifier-2hop": "g-classifier"}

RECORDS = (
    *("base", "lira", "rmia", "calibration", "attack-r", "loss", "classifier"),
    *("bavaria", "shrunk-lira", "regressed", "stacked", "best"),
)
SAMPLERS = ("independent", "mia", "metropolis", "gibbs", "truth", "stacked")

Digests = dict[str, dict[str, Any]]


def digest(values: Any) -> str:
    """Of the bytes of an array of numbers."""
    return hashlib.sha256(np.ascontiguousarray(values, dtype=np.float64).tobytes()).hexdigest()[:16]


def digests_of(result: AuditResult, *, place: str) -> Digests:
    """Of every attack: its scores, thresholds and metrics, and two figures for people."""
    found: Digests = {}
    for name, outcome in result.outcomes.items():
        metrics = outcome.metrics
        assert metrics is not None
        for old, new in RENAMED.items():
            name = name.replace(old, new)
        figures = [metrics.auc, *metrics.auc_interval, metrics.balanced_accuracy]
        figures += [number for rate in metrics.rates for number in (rate.tpr, *rate.interval)]
        found[f"{place} {name}"] = {
            "scores": digest(outcome.scores),
            "thresholds": digest([number for t in outcome.thresholds for number in (t.value, t.expected_fpr)]),
            "metrics": digest(figures),
            "auc": round(metrics.auc, 4),
        }
    for name, reason in result.left_out.items():
        found[f"{place} {name}"] = {"left out": reason.split(":")[0]}
    return found


def of_default() -> Digests:
    """The embedded default of ``glasshouse audit``."""
    from glasshouse.config import AuditFile, run_audit_file  # here, since a GPU's machine may lack pydantic

    return digests_of(run_audit_file(AuditFile(), folder=Path(), progress=False), place="default")


def of_records(*, count: int | None, epochs: int, shadows: int) -> Digests:
    """The digits, with every attack on records, online and offline."""
    population = load_dataset("digits").population
    if count is not None:
        population = glasshouse.Population(population.x[:count], population.y[:count])
    members = random_subsets(len(population), models=1, fraction=0.5, seed=3)[0]
    width = int(np.prod(population.x.shape[1:]))
    trainer = TorchTrainer(module=mlp(width, len(population.classes), hidden=[64]), epochs=epochs, device="cpu")
    found: Digests = {}
    for mode in ("online", "offline"):
        given: dict[str, Any] = {"model": None, "population": population, "members": members, "trainer": trainer}
        result = glasshouse.audit(**given, attacks=RECORDS, shadows=shadows, mode=mode, seed=3, progress=False)
        found |= digests_of(result, place=f"digits {mode}")
    return found


def of_settings() -> Digests:
    """Small audits of trees: another prior and share, offline, labels alone, a regression, groups."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(300, 4))
    labels, numbers = (x[:, 0] + rng.normal(size=300) > 0).astype(int), x[:, 0] + rng.normal(size=300)
    classes, regression = glasshouse.Population(x, labels), glasshouse.Population(x, numbers, regression=True)
    tree, forest = DecisionTreeClassifier(max_depth=6, random_state=0), RandomForestRegressor(10, random_state=0)
    settings: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "prior 0.1": (classes, tree, {"attacker": Attacker(prior=0.1)}),
        "offline": (classes, tree, {"mode": "offline"}),
        "fraction 0.1": (classes, tree, {"attacker": Attacker(fraction=0.1)}),
        "labels alone": (classes, tree, {"attacker": Attacker(query=glasshouse.LabelOnly(votes=4))}),
        "regression": (regression, forest, {}),
        "groups": (classes, tree, {"evaluation": Evaluation(groups={"sign": np.where(x[:, 1] > 0, "up", "down")})}),
    }
    found: Digests = {}
    for name, (population, estimator, given) in settings.items():
        result = glasshouse.audit(population, trainer=estimator, shadows=4, seed=5, progress=False, **given)
        found |= digests_of(result, place=name)
    return found


def of_graph(name: str, *, epochs: int, shadows: int, samples: int, slow: bool = True, **made: int) -> Digests:
    """A graph, with every attack and every sampler, online and offline; or without the two that take longest."""
    data = glasshouse.graph.citation_graph(**made) if made else glasshouse.graph.load_graph(name)
    data = getattr(data, "data", data)  # load_graph gave a set with its story before it gave a Data
    optimizer = functools.partial(torch.optim.Adam, lr=1e-3, weight_decay=1e-5)
    trainer = glasshouse.graph.GNNTrainer(hidden=16, epochs=epochs, optimizer=optimizer, device="cpu")
    found: Digests = {}
    for mode in ("online", "offline"):
        samplers = SAMPLERS if slow else tuple(sampler for sampler in SAMPLERS if sampler != "stacked")
        attacks: list[Any] = [*(RECORDS if slow else RECORDS[:-1]), "g-regressed", "g-stacked", graph_classifier()]
        attacks += [{"name": "g-base", "sampler": sampler, "samples": samples} for sampler in samplers]
        result = glasshouse.graph.audit(
            data, trainer=trainer, attacks=attacks, shadows=shadows, mode=mode, seed=3, progress=False
        )
        found |= digests_of(result, place=f"{name} {mode}")
    return found


def graph_classifier() -> Any:
    """The classifier on graphs by whichever name it has here."""
    return next(kind for name, kind in inspect.getmembers(glasshouse.graph) if name in _CLASSIFIERS)()


_CLASSIFIERS = ("HopClassifier", "GClassifier")


def tiny() -> Digests:
    """What a test can afford: seconds."""
    records = of_records(count=120, epochs=2, shadows=4) | of_settings()
    return records | of_graph("tiny", epochs=4, shadows=4, samples=1, slow=False, nodes=90, classes=3)


def small() -> Digests:
    """What a change is quickly tried with: a minute."""
    records = of_records(count=240, epochs=4, shadows=4) | of_settings()
    return records | of_graph("small", epochs=8, shadows=4, samples=2, nodes=120, classes=3)


def everything() -> Digests:
    """The embedded default, the digits, and Cora where its files are."""
    found = of_default() | of_records(count=None, epochs=30, shadows=8) | of_settings()
    try:
        return found | of_graph("cora", epochs=30, shadows=8, samples=4)
    except glasshouse.InputError as error:
        sys.stderr.write(f"Cora is left out: {error}\n")
        return found


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """One line for each attack that is not the same."""
    lines = []
    for name in [*before, *[name for name in after if name not in before]]:
        if name not in before or name not in after:
            lines.append(f"{name}: only {'before' if name in before else 'after'}")
        elif before[name] != after[name]:
            parts = [part for part in before[name] if before[name][part] != after[name].get(part)]
            lines.append(f"{name}: {', '.join(parts)} differ")
    return lines


def main() -> int:
    """Write digests, or compare two files of them; 1 where they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["write", "compare"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--small", action="store_true", help="a minute")
    parser.add_argument("--tiny", action="store_true", help="seconds")
    given = parser.parse_args()
    if given.what == "write":
        found = tiny() if given.tiny else small() if given.small else everything()
        given.files[0].write_text(json.dumps(found, indent=1) + "\n")
        return 0
    before, after = (json.loads(file.read_text()) for file in given.files)
    lines = differences(before, after)
    sys.stdout.write("\n".join([*lines, f"{len(before) - len(lines)} of {len(before)} are the same"]) + "\n")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
