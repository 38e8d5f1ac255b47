"""plan → train → audit with DP-SGD whose ε is known: how much of it is shown, and how often a bound is false.

Run: python benchmarks/statistics/own_coins.py [--runs 200] [--opacus 3]. Writes own_coins.md beside itself.

Each run plans canaries by `plan_canaries`, trains by DP-SGD that is written here (twenty full-batch steps on a linear
model; each canary has a feature of its own), asks the model about the canaries, and audits them by `glasshouse.audit`
with the plan as the declared design. The truth is that of the noise, by code of this file. With --opacus the same model
is trained by opacus; its ε is that of opacus's own accountant. Two plans are compared: 2 000 canaries of which half
train, and 20 000 crafted ones of which 2 000 train.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm

from glasshouse import Evaluation, Population, audit
from glasshouse.auditing.plan import Plan, plan_canaries
from glasshouse.evaluation.privacy.bounds import Design, count_right, gaussian_epsilon, mu_from_area, mu_lower_bound
from glasshouse.evaluation.privacy.claim import judge_claim

DELTA, CANARIES = 1e-5, 2000
PLANS = {"2 000 canaries, 1 000 of them train": (2000, 0.5), "20 000 canaries, 2 000 of them train": (20_000, 0.1)}
STEPS, CLIP = 20, 0.1  # of DP-SGD
EPSILONS = (1.0, 4.0, 8.0)
BOUNDS = (
    "order of scores",
    "order of scores, 99.99 %",
    "independent guesses",
    "Mahloujifar et al.",
    "any mechanism, δ = 1e-5",
)


def delta_of(epsilon: float, mu: float) -> float:
    """δ of a Gaussian mechanism (Balle and Wang, 2018, Theorem 8)."""
    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


def noise_for(epsilon: float) -> float:
    """The shift in standard deviations of the noise whose ε at δ is this."""
    return float(brentq(lambda mu: delta_of(epsilon, mu) - DELTA, 1e-3, 10.0))


def records(count: int) -> Population:
    """Records of two classes whose features are their numbers, so that a model can look a record up."""
    return Population(np.arange(float(count)).reshape(-1, 1), np.arange(count) % 2)


def private_sgd(plan: Plan, mu: float, random: np.random.Generator) -> Any:
    """A linear model after DP-SGD: gradients clipped to `CLIP`, and noise on their sum, in each of `STEPS` steps.

    The sum of all steps is μ-Gaussian private for noise of √STEPS / μ times `CLIP` (composition of Gaussian steps).
    """
    noise = math.sqrt(STEPS) / mu
    labels, inside = plan.labels[plan.canaries].astype(int), plan.members[plan.canaries]
    weights = np.zeros((len(labels), 2))  # of the feature of each canary
    for _ in range(STEPS):
        chances = np.exp(weights) / np.exp(weights).sum(axis=1, keepdims=True)
        gradients = chances - np.eye(2)[labels]
        gradients *= np.minimum(1.0, CLIP / np.linalg.norm(gradients, axis=1, keepdims=True))
        weights -= 0.01 * (gradients * inside[:, None] + noise * CLIP * random.normal(size=weights.shape))
    place = np.zeros(len(plan.members), dtype=int)
    place[plan.canaries] = np.arange(len(labels))
    return lambda x: weights[place[np.asarray(x)[:, 0].astype(int)]]


def shown(model: Any, plan: Plan, population: Population, *, whole: bool = True) -> tuple[dict[str, float], float]:
    """The bounds on ε of one audit, and the best of the published bound over numbers of guesses, on the same scores.

    Not as a ``whole``: the same bounds without the audit around them, whose test of a leak takes longest.
    """
    canaries, members = plan.audited(population)
    logits = np.asarray(model(canaries.x), dtype=np.float64)
    scores = logits[np.arange(len(logits)), canaries.y] - np.logaddexp.reduce(logits, axis=1)
    privacy = judge_claim(None, {"loss": scores}, members=members, unit="canary")
    found = [gaussian_epsilon(mu_from_area(scores, members, confidence=each), DELTA) for each in (0.95, 0.9999)]
    bounds = (*found, privacy.independent.epsilon, privacy.gaussian.epsilon, privacy.epsilon)
    if whole:
        evaluation = Evaluation(design=plan.design_of())
        options: dict[str, Any] = {"shadows": 0, "attacks": ["loss"], "progress": False, "evaluation": evaluation}
        result = audit(canaries, model=model, members=members, **options)
        told, declared = result.privacy, result.declared
        assert told is not None
        assert declared is not None
        audited = (declared.epsilon, declared.sure, told.independent.epsilon, told.gaussian.epsilon, told.epsilon)
        np.testing.assert_allclose(audited, bounds, rtol=1e-3)  # answers of opacus have single precision
    designs = [Design(share, share) for share in (0.02, 0.05, 0.1, 0.2)]
    published = [gaussian_epsilon(mu_lower_bound(count_right(scores, members, one)), DELTA) for one in designs]
    return dict(zip(BOUNDS, bounds, strict=True)), max(published)


def simulated(
    epsilon: float, *, runs: Iterable[int], canaries: int = CANARIES, share: float = 0.5
) -> dict[str, list[float]]:
    """Bounds of many runs at one ε; canaries of which fewer than half train are crafted, beside 2 000 other records."""
    mu, population = noise_for(epsilon), records(canaries + 2000)
    found: dict[str, list[float]] = {name: [] for name in (*BOUNDS, "published, best number of guesses")}
    crafted = np.arange(len(population)) < canaries
    for run in runs:
        random = np.random.default_rng((run, round(1000 * epsilon)))
        chosen: Any = canaries if share == 0.5 else crafted
        plan = plan_canaries(population, canaries=chosen, share=share, salt=random.bytes(16).hex())
        bounds, published = shown(private_sgd(plan, mu, random), plan, population, whole=run % 10 == 0)
        for name, value in {**bounds, "published, best number of guesses": published}.items():
            found[name].append(value)
    return found


def with_opacus(epsilon: float, *, seed: int, canaries: int = CANARIES) -> tuple[dict[str, float], float, float]:
    """One model by DP-SGD, full batches, whose canaries are told apart by a feature each; its ε by opacus."""
    import torch
    from opacus import PrivacyEngine
    from opacus.accountants.utils import get_noise_multiplier
    from torch import nn

    random = np.random.default_rng(seed)
    count, steps = 2 * canaries, STEPS
    population = records(count)
    plan = plan_canaries(population, canaries=canaries, salt=random.bytes(16).hex())
    place = np.full(count, -1)
    place[plan.canaries] = np.arange(canaries)
    inside = np.flatnonzero(plan.members)
    x = torch.zeros(len(inside), canaries)
    own = place[inside]
    x[np.flatnonzero(own >= 0), own[own >= 0]] = 1.0
    y = torch.tensor(plan.labels[inside].astype(np.int64))
    torch.manual_seed(seed)
    net = nn.Linear(canaries, 2, bias=False)
    nn.init.zeros_(net.weight)
    noise = get_noise_multiplier(target_epsilon=epsilon, target_delta=DELTA, sample_rate=1.0, steps=steps)
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=len(inside))
    engine = PrivacyEngine(accountant="rdp")
    private, optimizer, loader = engine.make_private(
        module=net,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=noise,
        max_grad_norm=CLIP,
        poisson_sampling=False,
    )
    for _ in range(steps):
        for batch, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(private(batch), labels).backward()
            optimizer.step()
    weights = net.weight.detach().numpy().T * len(inside)  # [canaries, 2], as sums of gradients

    def model(values: NDArray[np.float64]) -> NDArray[np.float64]:
        at = place[np.asarray(values)[:, 0].astype(int)]
        return np.asarray(weights[at], dtype=np.float64)

    bounds, published = shown(model, plan, population)
    return bounds, published, float(engine.get_epsilon(DELTA))


def table(found: Mapping[float, dict[str, list[float]]]) -> str:
    """One row per ε and bound: its mean, its share of the truth, and in how many runs it is above the truth."""
    lines = ["| true ε | bound | mean | share of the truth | above the truth |", "| --- | --- | --- | --- | --- |"]
    for epsilon, bounds in found.items():
        for name, values in bounds.items():
            mean, false = float(np.mean(values)), int(np.sum(np.array(values) > epsilon))
            share = f"{100 * mean / epsilon:.0f} %"
            lines.append(f"| {epsilon:g} | {name} | {mean:.2f} | {share} | {false} of {len(values)} |")
    return "\n".join(lines)


_TOLD = """\
"Order of scores" is the bound that a planned audit adds, with 95 % and with 99.99 % confidence; it and "independent
guesses" assume Gaussian privacy and that canaries do not influence each other. "Mahloujifar et al." (the recursion of
their paper, ICML 2025, with three numbers of guesses that share the error) assumes Gaussian privacy alone, and "any
mechanism" nothing; every audit has these. "Published, best number of guesses" is the same recursion with the best of
four numbers of guesses after the fact, so it is a little too high.

With 95 % confidence one run in twenty may be above the truth, and so it is: this mechanism leaks all that its μ allows,
so nothing hides a bound that is a little too high. That none of 600 runs is above the truth needs 99.99 % (expected:
0.06 of 600). With 2 000 canaries by fair coins no such bound can show 60 % at ε = 1: the standard error of any unbiased
estimate of μ is √(1/1000 + 1/1000) = 0.045, and μ is 0.27. What costs accuracy is the canaries that train; those left
out cost a query. With 2 000 that train and 18 000 left out the standard error is 0.024.
"""


def page(
    plans: Mapping[str, Mapping[float, dict[str, list[float]]]],
    trained: Iterable[tuple[float, dict[str, float], float]],
) -> str:
    """The page: the mechanism of this file, and models by opacus, (asked ε, bounds, ε of its accountant) each."""
    runs = len(next(iter(plans.values()))[1.0][BOUNDS[0]])
    lines = ["| asked of opacus | its accountant | " + " | ".join(BOUNDS) + " |", "| --- " * (len(BOUNDS) + 2) + "|"]
    for epsilon, bounds, spent in trained:
        lines.append(f"| {epsilon:g} | {spent:.2f} | " + " | ".join(f"{bounds[name]:.2f}" for name in BOUNDS) + " |")
    parts = [
        "# Bounds on ε with coins of our own",
        f"δ = {DELTA:g}, 95 % confidence unless said; {runs} runs of DP-SGD for each plan and ε, planned, trained and "
        f"audited (every tenth run by a whole audit, the others by its bounds alone); the truth is that of the noise.",
        *(part for name, found in plans.items() for part in (f"## {name}", table(found))),
        "## What they are",
        _TOLD.strip(),
        f"DP-SGD of opacus, {STEPS} full-batch steps on the same model, {CANARIES} canaries of which half train:",
        "\n".join(lines),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--opacus", type=int, default=3)
    given = parser.parse_args()
    plans = {
        name: {
            epsilon: simulated(epsilon, runs=range(given.runs), canaries=one[0], share=one[1]) for epsilon in EPSILONS
        }
        for name, one in PLANS.items()
    }
    trained = []
    for epsilon in EPSILONS:
        for seed in range(given.opacus):
            bounds, _, spent = with_opacus(epsilon, seed=seed)
            trained.append((epsilon, bounds, spent))
    print(text := page(plans, trained))
    Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
