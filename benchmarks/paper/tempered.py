"""Does a temperature, or an estimated Λ, make BASE and G-BASE stronger? Writes tempered.md.

Sablayrolles' rule has a temperature T that the paper absorbs into the loss, and Theorem 1 has a ratio Λ that G-BASE
sets to 1. Here the log-odds are ``-S / T - log mean exp(-S_k / T) + c E``, where E is by how much the target is surer
of the node than the shadow models are, whatever the label (negative entropy, in nats): Λ compares models before the
labels are seen, so only what does not depend on labels may estimate it. T and c are those with the largest mean TPR at
1 % FPR, or AUC, over the pool's simulated targets. Every attack is compared with itself at T = 1 and c = 0 on the same
targets. RMIA with γ = 1 ranks like BASE at every T (Theorem 2), so its rows are BASE's.

    python benchmarks/paper/tempered.py --datasets cora citeseer
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.numerics import log_mean_exp
from glasshouse.evaluation import auc, tpr_at_fpr
from glasshouse.evidence import Mode
from glasshouse.graph import Scene
from glasshouse.graph.sampling.samplers import SAMPLERS, SamplingRequest, draw
from glasshouse_experiments.bench import Bench
from glasshouse_experiments.settings import SETTINGS, Preset

TEMPERATURES = (0.25, 0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0)
LAMBDAS = (0.0, -0.5, 0.5, 1.0, 2.0)
AIMS = ("TPR at 1 %", "AUC")


class Signals(NamedTuple):
    """What the log-odds of one target are made of: own and references' signals, who is used, and E."""

    own: FloatArray  # [M, nodes]
    others: FloatArray  # [K, M, nodes]
    usable: BoolArray | None  # [K, nodes]
    surer: FloatArray  # [nodes]


def scores(of: Signals, temperature: float, weight: float) -> FloatArray:
    """Mean log-odds' posteriors over the training sets, [nodes]; the mean over M is of probabilities, as in G-BASE."""
    found = np.zeros(of.own.shape[1])
    for own, others in zip(of.own, of.others.swapaxes(0, 1), strict=True):
        odds = -own / temperature - log_mean_exp(-others / temperature, where=of.usable) + weight * of.surer
        found += 1 / (1 + np.exp(-np.clip(odds, -500, 500))) if len(of.own) > 1 else odds
    return found / len(of.own)


def signals(scene: Scene, mode: Mode, *, graph: bool, seed: int) -> Signals:
    """BASE's signals (losses without edges), or G-BASE's with training sets by its 0-hop sampler."""
    nodes = scene.nodes
    usable = None if mode == "online" else ~scene.shadow_members[:, nodes]
    evidence = scene.zero_hop
    others = -_entropy(evidence.shadow_logits)[:, nodes]
    expected = others.mean(axis=0) if usable is None else (others * usable).sum(axis=0) / usable.sum(axis=0)
    surer = -_entropy(evidence.target_logits)[nodes] - expected
    if not graph:
        return Signals(evidence.target_loss[None, nodes], evidence.shadow_loss[:, None, nodes], usable, surer)
    request = SamplingRequest(samples=8, prior=np.full(len(evidence.target_loss), 0.5), mode=mode, passes=1, seed=seed)
    found = scene.toggled(draw(SAMPLERS.find("mia"), scene, request).masks)
    return Signals(found[0], found[1:], usable, surer)


def _entropy(logits: Any) -> FloatArray:
    logs = log_softmax(np.asarray(logits, dtype=np.float64), axis=-1)
    return np.asarray(-(np.exp(logs) * logs).sum(axis=-1))


def figure(aim: str, found: FloatArray, truth: BoolArray) -> float:
    """The figure that is tuned for, in percent."""
    return 100 * (auc(found, truth) if aim == "AUC" else tpr_at_fpr(found, truth, 0.01))


def tuned(simulated: Sequence[tuple[Signals, BoolArray]], aim: str, weights: Sequence[float]) -> tuple[float, float]:
    """T and c with the largest mean figure over simulated targets; among equals, those nearest to T = 1 and c = 0."""
    order = sorted(TEMPERATURES, key=lambda one: abs(np.log(one)))
    cases = [(temperature, weight) for weight in weights for temperature in order]
    return max(cases, key=lambda case: np.mean([figure(aim, scores(of, *case), truth) for of, truth in simulated]))


def measured(dataset: str, *, targets: int, folder: Path) -> Iterator[dict[str, Any]]:
    """One row for each mode, attack, aim and form: what was chosen, and the mean gain over the targets."""
    bench = Bench(
        setting=SETTINGS.find(dataset),
        preset=Preset(targets=targets, datasets=(dataset,)),
        folder=folder,
        progress=False,
    )
    members = [who for _, who in bench.targets()]
    scenes = list(bench.scenes())
    modes: tuple[Mode, ...] = ("online", "offline")
    for mode, graph in ((mode, graph) for graph in (False, True) for mode in modes):
        pool = [(one.view, one.members) for one in scenes[0].simulated()]
        simulated = [(signals(view, mode, graph=graph, seed=0), truth) for view, truth in pool]
        real = [
            (signals(scene, mode, graph=graph, seed=0), who[scene.nodes])
            for scene, who in zip(scenes, members, strict=True)
        ]
        for aim in AIMS:
            for form, weights in (("temperature", (0.0,)), ("temperature and Λ", LAMBDAS)):
                chosen = tuned(simulated, aim, weights)
                row: dict[str, Any] = {"data set": bench.setting.paper_name, "mode": mode}
                row |= {"attack": "G-BASE (MIA)" if graph else "BASE, RMIA", "form": form, "tuned for": aim}
                row |= {"T": chosen[0], "c": chosen[1]}
                for measure in AIMS:
                    plain = [figure(measure, scores(of, 1.0, 0.0), truth) for of, truth in real]
                    new = [figure(measure, scores(of, *chosen), truth) for of, truth in real]
                    gain = np.array(new) - np.array(plain)
                    error = float(gain.std(ddof=1) / np.sqrt(len(gain))) if len(gain) > 1 else float("nan")
                    row |= {
                        measure: float(np.mean(plain)),
                        f"gain in {measure}": float(gain.mean()),
                        f"se {measure}": error,
                    }
                yield row


def page(rows: Sequence[dict[str, Any]], targets: int) -> str:
    """The rows as Markdown, and on how many data sets each form helps by two standard errors."""
    head = ("data set", "mode", "attack", "form", "tuned for", "T", "c", "AUC", "gain", "TPR at 1 %", "gain")
    lines = ["# A temperature, and Λ, tuned on simulated targets", ""]
    lines += [f"{targets} targets, K = 8 online and 4 offline; gains over T = 1, c = 0 with their standard errors."]
    lines += [
        "Written by `python benchmarks/paper/tempered.py`.",
        "",
        f"| {' | '.join(head)} |",
        "|" + " --- |" * len(head),
    ]
    for row in rows:
        told = [str(row[name]) for name in head[:5]] + [f"{row['T']:g}", f"{row['c']:g}"]
        for aim in ("AUC", "TPR at 1 %"):
            told += [f"{row[aim]:.2f}", f"{row[f'gain in {aim}']:+.2f} ± {row[f'se {aim}']:.2f}"]
        lines.append(f"| {' | '.join(told)} |")
    lines += [
        "",
        "| attack | form, tuned for | mode | data sets with a gain in its aim of two standard errors | with a loss |",
    ]
    lines.append("|" + " --- |" * 5)
    for key in dict.fromkeys((row["attack"], row["form"], row["tuned for"], row["mode"]) for row in rows):
        some = [row for row in rows if (row["attack"], row["form"], row["tuned for"], row["mode"]) == key]
        better = [row["data set"] for row in some if row[f"gain in {key[2]}"] > 2 * row[f"se {key[2]}"]]
        worse = [row["data set"] for row in some if row[f"gain in {key[2]}"] < -2 * row[f"se {key[2]}"]]
        told = [f"{len(names)} of {len(some)}: {', '.join(names) or 'none'}" for names in (better, worse)]
        lines.append(f"| {key[0]} | {key[1]}, {key[2]} | {key[3]} | {told[0]} | {told[1]} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure the named data sets; rows of others are kept from earlier calls."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "tempered.md")
    parser.add_argument("--pools", type=Path, default=Path("runs/pools"))
    parser.add_argument("--datasets", nargs="+", default=["cora", "citeseer", "pubmed", "amazon-photo", "github"])
    parser.add_argument("--targets", type=int, default=10)
    options = parser.parse_args()
    kept = options.out.with_suffix(".json")
    known = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for dataset in options.datasets:
        known[dataset] = list(measured(dataset, targets=options.targets, folder=options.pools))
        kept.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        options.out.write_text(
            page([row for rows in known.values() for row in rows], options.targets), encoding="utf-8"
        )
        print(dataset, flush=True)


if __name__ == "__main__":
    main()
