"""Kept ``metrics.json`` beside those of another version: ``python benchmarks/robustness/kept_metrics.py TREE``.

TREE is a checkout of the other version. Both run the same forty small audits, each version in a process of its own, and
what they save is compared number by number. `RENAMED` has the keys that were called otherwise, `CAUSES` why some
numbers may differ; a difference without a cause ends the command with 1.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[2]
GROUPED = {  # where a keyword of the earlier version is now, and its name there
    "shadow_trainer": ("attacker", "trainer"),
    "prior": ("attacker", "prior"),
    "fraction": ("attacker", "fraction"),
    "query": ("attacker", "query"),
    "public": ("attacker", "public"),
    "known_graph": ("attacker", "graph"),
    "fprs": ("evaluation", "fprs"),
    "policy": ("evaluation", "threshold"),
    "groups": ("evaluation", "groups"),
    "claim": ("evaluation", "claim"),
}
RENAMED = {"_steady": "_stability"}  # end of an earlier key -> of today's; keys of texts are not compared
CAUSES = {  # pattern of "case: key" -> why the numbers there differ; the first that fits counts
    r"format$": "the version of the format is 6",
    r"_flag_score$": "new: the score that a threshold judges (ddc388b2)",
    r"worst_cell": "new: the most exposed group (c69c7e98)",
    r"power\.": "the power of the leak test as it is used now, with unequal shares of the 5 % (d40b15fb, 937da5fc)",
    r"p_value$": "the leak test gives most of the 5 % to the figure that simulated targets rank first (d40b15fb)",
    r"privacy\.": (
        "ε under Gaussian privacy by a new recursion; bounds that assume more and show less are left out (06a2e403)"
    ),
    r"(headline\.rate|rates\[\d+\])\.(tpr|chance)$": "a TPR is a median-unbiased estimate (efe4505a)",
    r"^(logistic, no leak|torch|graph: g-classifier): (top_records|neighbourhoods)": (
        "a run that shows no leak lists no records (867fdef0)"
    ),
    r"groups\[\d+\]\.(tpr|fpr)": "groups are compared at one operating point, that of the flags (ddc388b2, c69c7e98)",
    r"_decision$|_fdr$|listed$|thresholds\[\d+\]\.(called|correct|false_alarms|interval)|accusations": (
        "flags are decided with as many references as simulated targets have, so the lower end of a threshold's rate "
        "needs no correction; lists use the stated prior (ddc388b2)"
    ),
    r"unlikeness": "the limit of a mismatch follows Student's distribution (f510775a)",
    r"informia": "`informia` is of a later version; this threshold differs in its last bit",
    r"auc_interval": "intervals on the logit scale are written once; the last bit (b6db25dc)",
}
RECORDS = (
    *("base", "lira", "rmia", "calibration", "attack-r", "loss", "classifier"),
    *("bavaria", "shrunk-lira", "regressed", "stacked", "best"),
)
GRAPHS = ("g-base", "g-classifier", "g-regressed", "g-stacked")

Case = tuple[str, Callable[[], Any]]


def _call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call an audit with the keywords of the earlier version, grouped where this version groups them."""
    import glasshouse

    if hasattr(glasshouse, "Attacker"):
        groups: dict[str, dict[str, Any]] = {}
        for name in [one for one in options if one in GROUPED]:
            group, new = GROUPED[name]
            groups.setdefault(group, {})[new] = options.pop(name)
        kinds = {"attacker": glasshouse.Attacker, "evaluation": glasshouse.Evaluation}
        options |= {group: kinds[group](**given) for group, given in groups.items()}
    return function(*arguments, progress=False, **options)


def _records() -> Iterator[Case]:
    import numpy as np
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    from glasshouse import LabelOnly, Population, PrivacyClaim, TorchTrainer, audit, audit_evidence, mlp

    random = np.random.default_rng(0)
    x = random.standard_normal((400, 6))
    noisy = x[:, 0] + random.standard_normal(400)
    people = Population(x, (noisy > 0).astype(int))
    prices = Population(x, noisy, regression=True)
    forest = RandomForestClassifier(n_estimators=10, max_depth=6, random_state=0)
    tree = DecisionTreeClassifier(max_depth=6, random_state=0)
    sex = {"sex": np.where(np.arange(400) % 3, "f", "m"), "age": np.arange(400) % 50}

    def case(name: str, population: Any = people, trainer: Any = forest, **options: Any) -> Case:
        return name, lambda: _call(audit, population, trainer=trainer, **{"shadows": 8, "seed": 1, **options})

    for attack in RECORDS:
        yield case(f"{attack}, prior 0.5", attacks=[attack])
    for attack in ("base", "lira", "rmia", "bavaria", "regressed", "stacked"):
        yield case(f"{attack}, prior 0.1", attacks=[attack], prior=0.1)
    for attack in ("base", "lira", "rmia", "calibration", "stacked"):
        yield case(f"{attack}, offline", attacks=[attack], mode="offline")
    yield case("one-tenth drawn", attacks=["base", "rmia"], fraction=0.1, shadows=16)
    yield case("labels alone, forest", attacks=["base", "lira"], query=LabelOnly(votes=8))
    yield case("labels alone, tree", trainer=tree, attacks=["rmia"], query=LabelOnly(votes=8), prior=0.1)
    wood = RandomForestRegressor(n_estimators=10, random_state=0)
    yield case("regression", prices, wood, attacks=["base", "lira", "rmia"])
    yield case("regression, offline, prior 0.1", prices, wood, attacks=["base"], mode="offline", prior=0.1)
    yield case("groups", attacks=["base", "lira"], groups=sex)
    yield case("groups of a tree, careful thresholds", trainer=tree, attacks=["rmia"], groups=sex, policy="max")
    yield case("a claim", attacks=["base"], claim=PrivacyClaim(epsilon=2.0, delta=1e-5), fprs=[0.05])
    yield case("public records", attacks=["base", "loss"], public=0.2)
    yield case("another trainer", attacks=["base"], shadow_trainer=tree)
    yield case("logistic, no leak", trainer=LogisticRegression(), attacks=["base", "lira", "stacked"])
    yield case("one reference model", attacks=["calibration"], shadows=1)
    yield case("no shadow models", shadows=0)
    yield case(
        "torch",
        trainer=TorchTrainer(module=mlp(6, 2), epochs=5),
        attacks=["base", "rmia", "informia"],
        shadows=4,
    )

    def evidence(**options: Any) -> Any:
        import glasshouse

        losses, drawn = np.random.default_rng(2).exponential(size=(9, 300)), np.random.default_rng(3)
        shadows = drawn.permuted(np.tile([[0], [1]], (4, 300)).astype(bool), axis=0)
        members = drawn.random(300) < 0.5
        found = glasshouse.Evidence(
            target_loss=losses[0] + 0.5 * ~members, shadow_loss=losses[1:] + 0.5 * ~shadows, shadow_members=shadows
        )
        return _call(audit_evidence, found, members=members, seed=1, **options)

    yield "saved losses", evidence
    yield "saved losses, prior 0.1", lambda: evidence(prior=0.1, attacks=["base", "lira", "stacked"])


def _targets() -> Iterator[Case]:
    import numpy as np
    from sklearn.tree import DecisionTreeClassifier

    from glasshouse import Population, audit_targets

    random = np.random.default_rng(4)
    people = Population(x := random.standard_normal((300, 4)), (x[:, 0] + random.standard_normal(300) > 0).astype(int))
    options = {"trainer": DecisionTreeClassifier(max_depth=7, random_state=0), "shadows": 8, "targets": 2, "seed": 2}
    yield "several targets", lambda: _call(audit_targets, people, attacks=["base", "lira"], **options)


def _graphs() -> Iterator[Case]:
    from glasshouse.graph import GNNTrainer, audit, citation_graph

    data = citation_graph(nodes=160, classes=3, words=200, seed=0)

    def case(name: str, **options: Any) -> Case:
        given = {"shadows": 4, "seed": 1, "nodes": 60, **options}
        return name, lambda: _call(audit, data, trainer=GNNTrainer(epochs=10, hidden=8), **given)

    for attack in GRAPHS:
        yield case(f"graph: {attack}", attacks=[attack])
    yield case("graph: prior 0.1", attacks=["base", "g-base"], prior=0.1)
    yield case("graph: offline", attacks=["g-base"], mode="offline")


def cases() -> Iterator[Case]:
    """All audits, in one order."""
    yield from _records()
    yield from _targets()
    yield from _graphs()


def write(folder: Path) -> None:
    """Run every case in this process, and keep its ``metrics.json``; of one that fails, what it says."""
    for number, (name, run) in enumerate(cases()):
        place = folder / f"{number:02}"
        try:
            run().save(place)
            found = [json.loads(path.read_text()) for path in sorted(place.rglob("metrics.json"))]
            kept: Any = found[0] if len(found) == 1 else found
        except Exception as error:
            kept = {"error": f"{type(error).__name__}: {error}"}
        (folder / f"{number:02}.json").write_text(json.dumps({"name": name, "metrics": kept}))
        print(f"{number:02} {name}", file=sys.stderr, flush=True)


def _today(key: str) -> str:
    """A key as it is called today."""
    ends = (old for old in RENAMED if key.endswith(old))
    return next((key.removesuffix(old) + RENAMED[old] for old in ends), key)


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a JSON document with its place, by the keys of today."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{place}.{_today(key)}".lstrip("."))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaves(inner, f"{place}[{number}]")
    else:
        yield place, value


def number(value: Any) -> bool:
    """Whether a value is one that is compared: a number, a truth value or nothing."""
    return value is None or isinstance(value, int | float)


def differences(before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    """Places whose number is another one, or that one version alone has."""
    old, new = dict(leaves(before)), dict(leaves(after))
    for place in {**old, **new}:
        left, right = old.get(place, "absent"), new.get(place, "absent")
        if (
            left != right
            and (number(left) or number(right))
            and not (left in ("absent", None) and right in ("absent", None))
        ):
            yield place, left, right


def compared(before: Path, after: Path) -> int:
    """Print the page; how many differences have no cause."""
    rows, unexplained, counted, used = [], [], 0, dict.fromkeys(CAUSES, 0)
    for path in sorted(after.glob("*.json")):
        left, right = (json.loads((folder / path.name).read_text()) for folder in (before, after))
        numbers = sum(number(value) for _, value in leaves(right["metrics"]))
        found = list(differences(left["metrics"], right["metrics"]))
        counted += numbers
        for place, old, new in found:
            told = f"{right['name']}: {place}"
            cause = next((one for one in CAUSES if re.search(one, told)), None)
            if cause is None:
                unexplained.append(f"{told}: {old} -> {new}")
            else:
                used[cause] += 1
        rows.append(f"| {right['name']} | {numbers} | {len(found) or 'none'} |")
    print("# Forty kept `metrics.json` beside ca827a1\n")
    print("`python benchmarks/robustness/kept_metrics.py TREE`, on one machine, with one set of dependencies.\n")
    print(f"{len(rows)} audits with {counted} numbers. Differences without a named cause: {len(unexplained)}.")
    print(
        "Scores, ranks, AUCs, balanced accuracies and thresholds are equal to the last bit, but for the causes below.\n"
    )
    print("| differences | why |\n| --- | --- |")
    print(*[f"| {count} | {CAUSES[one]} |" for one, count in used.items() if count], sep="\n")
    print("\n| audit | numbers | that differ |\n| --- | --- | --- |", *rows, sep="\n")
    print(*unexplained, sep="\n", file=sys.stderr)
    return len(unexplained)


def main() -> None:
    """Run both versions, or one of them into a folder, or compare two folders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path, help="a checkout of the other version")
    parser.add_argument("--write", action="store_true", help="write this process's runs into the folder TREE")
    parser.add_argument("--keep", type=Path, help="folder of runs to use again, or to keep")
    told = parser.parse_args()
    if told.write:
        write(told.tree)
        return
    with tempfile.TemporaryDirectory() if told.keep is None else contextlib.nullcontext(told.keep) as place:
        folders = [Path(place) / "before", Path(place) / "after"]
        for folder, tree in zip(folders, (told.tree, HERE), strict=True):
            if not folder.exists():
                folder.mkdir(parents=True)
                paths = {"PYTHONPATH": str(tree.resolve() / "src"), "OMP_NUM_THREADS": "1"}
                command = [sys.executable, __file__, str(folder), "--write"]
                subprocess.run(command, env=os.environ | paths, cwd=place, check=True)
        sys.exit(1 if compared(*folders) else 0)


if __name__ == "__main__":
    main()
