"""An audit that fits into a given time: what it gives up, planned from the first questions that are measured."""

from __future__ import annotations

import dataclasses
import logging
import math
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

from glasshouse.attacks import Attack
from glasshouse.attacks.cross_fit import ENOUGH
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator
from glasshouse.evaluation import Best
from glasshouse.graph.attacks.g_base import GBASE
from glasshouse.graph.attacks.g_stacked import GStacked
from glasshouse.graph.attacks.stacking.pool_signals import TEACHING
from glasshouse.graph.rule.toggling import answer_question, question_about
from glasshouse.graph.scene import Scene

_FEW, _MORE = 64, 256  # nodes of the two questions that are measured
_MASKS = 2
_SPARE = 1.3  # hubs are rare among measured nodes, and dear
_AFTER = 0.1  # of the time, for zero-hop attacks, the leak test and the report
_ENOUGH_NODES = 5_000  # as many are audited, if they are wanted, before training sets and rounds are kept
_FEWEST = 200
_LOG = logging.getLogger("glasshouse")


# how many training sets G-BASE draws, and g-stacked in each round (None: it is left out), at most
_LEVELS = ((10**6, (10**6,) * 9), (4, (4, 2, 4)), (2, (4,)), (2, None))


class QuestionCost(NamedTuple):
    """Seconds to toggle nodes under one mask by one model: a part for the whole graph, and one for each node."""

    fixed: float
    each: float

    def seconds(self, nodes: int) -> float:
        """For so many nodes."""
        return self.fixed + self.each * nodes


class BudgetPlan(NamedTuple):
    """What an audit does in its time."""

    nodes: int  # how many are audited
    attacks: dict[str, Attack[Any]]  # with the numbers of training sets and rounds that fit, by name
    left_out: dict[str, str]  # attacks that do not fit at all, each with the reason
    note: str  # what was given up, for the report; it says so too if nothing was


def check_minutes(minutes: Any) -> None:
    """Refuse what is not a finite number above zero, such as True and "15"; None is no limit."""
    if minutes is None:
        return
    if isinstance(minutes, bool) or not isinstance(minutes, Real) or not 0 < float(minutes) < math.inf:
        raise InputError(f"minutes: {minutes!r} is not a positive number; give minutes, such as 15.")


def measure_questions(scene: Scene, *, seed: int, clock: Callable[[], float] = time.perf_counter) -> QuestionCost:
    """Toggle a few nodes and then some more, with all models of a scene, and see what a node costs.

    A first question, which is not measured, compiles what is compiled and sends the graph to the device.
    """
    random = generator(seed, "budget")
    masks = random.random((_MASKS, int(scene.data.num_nodes))) < float(scene.shadow_members.mean())
    order = random.permutation(scene.nodes)
    found = []
    with scene.keeping():
        models = scene.profiled()
        for count in (_FEW, _FEW, _MORE):
            began = clock()
            question = question_about(models, scene.data, masks, order[:count])
            answer_question(models, question).signal.sum().item()  # waits for a device
            found.append(clock() - began)
    questions = _MASKS * len(scene.models)
    more = min(_MORE, len(order)) - min(_FEW, len(order))
    each = max(0.0, found[2] - found[1]) / max(1, more)
    return QuestionCost(max(0.0, found[1] - each * min(_FEW, len(order))) / questions, each / questions)


def plan_budget(
    attacks: Mapping[str, Attack[Any]],
    cost: QuestionCost,
    *,
    models: int,  # shadow models
    nodes: int,  # that are wanted
    size: int,  # nodes of the graph
    seconds: float,  # that are left
    minutes: float,  # of the whole audit, for the note
    least: int = _FEWEST,  # nodes that are audited in any case; all that are wanted, if the user named them
) -> BudgetPlan:
    """As many nodes as fit with everything that was wanted; with fewer training sets and rounds if they are too few."""
    usable = max(0.0, seconds - 60 * minutes * _AFTER) / _SPARE
    wanted = min(nodes, max(least, _ENOUGH_NODES))

    def predicted(made: Mapping[str, Attack[Any]], count: int) -> float:
        return sum(_seconds(attack, cost, models=models, nodes=count, size=size) for attack in made.values())

    most, made = 0, _at_level(attacks, *_LEVELS[-1])
    for level in _LEVELS:
        tried = _at_level(attacks, *level)
        fitting = bisect_right(range(1, nodes + 1), usable, key=partial(predicted, tried))
        if fitting > most:
            most, made = fitting, tried
        if most >= wanted:
            break
    chosen = min(nodes, max(most, least))
    given_up = [f"{chosen} of the {nodes} requested nodes"] if chosen < nodes else []
    given_up += [
        f"{_drawn(less)} training sets instead of {_drawn(attacks[name])} for {name}"
        for name, less in made.items()
        if _drawn(less) != _drawn(attacks[name])
    ]
    expected = predicted(made, chosen) * _SPARE
    note = f"Planned to take {minutes:g} minutes: " + (
        f"to fit, the audit used {'; '.join(given_up)}." if given_up else "nothing had to be given up."
    )
    if expected > usable * _SPARE:
        note += f" Even so, its queries were expected to take {expected / 60:.1f} minutes, more than were left."
    lost = {name: f"left out to stay within {minutes:g} minutes" for name in attacks if name not in made}
    return BudgetPlan(chosen, made, lost, note)


def within_minutes(
    scene: Scene, attacks: Mapping[str, Attack[Any]], *, minutes: float, began: float, least: int, seed: int
) -> BudgetPlan:
    """Measure what a question costs, and plan the rest of an audit that began at a time of `time.perf_counter`."""
    asking = any(isinstance(attack, GBASE | GStacked | Best) for attack in attacks.values())
    if not asking or "graph" not in scene.offers:
        return BudgetPlan(len(scene.nodes), dict(attacks), {}, "")
    cost = measure_questions(scene, seed=seed)
    plan = plan_budget(
        attacks,
        cost,
        models=len(scene.shadows),
        nodes=len(scene.nodes),
        size=int(scene.data.num_nodes),
        seconds=60 * minutes - (time.perf_counter() - began),
        minutes=minutes,
        least=least,
    )
    _LOG.info("%s", plan.note)
    return plan


def _at_level(
    attacks: Mapping[str, Attack[Any]], samples: int, rounds: tuple[int, ...] | None
) -> dict[str, Attack[Any]]:
    """The attacks with at most so many training sets, in all or in each round."""
    made: dict[str, Attack[Any]] = {}
    for name, attack in attacks.items():
        if isinstance(attack, GBASE):
            made[name] = dataclasses.replace(attack, samples=min(attack.samples, samples))
        elif isinstance(attack, GStacked) and (rounds is not None or len(attacks) == 1):
            pairs = zip(attack.samples, rounds or (2,), strict=False)
            made[name] = dataclasses.replace(attack, samples=tuple(min(pair) for pair in pairs))
        elif not isinstance(attack, GStacked):
            made[name] = attack
    return made


def _drawn(attack: Attack[Any]) -> str:
    """How many training sets an attack draws, round by round; empty if it draws none."""
    if isinstance(attack, GBASE):
        return str(attack.samples)
    return " + ".join(map(str, attack.samples)) if isinstance(attack, GStacked) else ""


def _seconds(attack: Attack[Any], cost: QuestionCost, *, models: int, nodes: int, size: int) -> float:
    """Of all questions of an attack: models x masks, of the target and of the simulated ones."""
    total = 0.0
    if isinstance(attack, GBASE | Best):
        samples = attack.samples if isinstance(attack, GBASE) else GBASE().samples
        total += samples * ((1 + models) + models * (models - 1)) * cost.seconds(nodes)
    if isinstance(attack, GStacked | Best):
        stacked = attack if isinstance(attack, GStacked) else GStacked()
        asked, targets = min(size, max(nodes, TEACHING)), min(models, stacked.targets)
        if targets * asked > ENOUGH and models >= 8:
            targets = max(4, min(targets // 2, ENOUGH // asked))
        first, *later = stacked.samples
        sampled = min(models, stacked.sampled_models)
        questions = first * (1 + sampled) + sum(later) * (targets * max(1, models - 1) + 1 + sampled)
        total += questions * cost.seconds(asked)
    return total
