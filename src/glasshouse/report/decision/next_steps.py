"""What to do next: only what fits the finding and the kind of audit, each with lines that Glasshouse runs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

from glasshouse.report.context import Context
from glasshouse.report.decision.conclusion import FACTOR
from glasshouse.report.decision.rating import Rating
from glasshouse.report.format import texts_beside
from glasshouse.report.policy import Policy
from glasshouse.report.summary import Summary

_FOREST = re.compile(r"\b(?:RandomForest|ExtraTrees|DecisionTree|GradientBoosting)(?:Classifier|Regressor)\b")
_MORE_SHADOWS = 8
_FIRST = 10.0  # ε; a larger one bounds nothing that a reader could use
_TEXTS: dict[str, dict[str, str]] = texts_beside(__file__)

Where = Literal["shell", "audit file", "python"]


class Code(NamedTuple):
    """Lines to run or to write."""

    where: Where
    text: str


class Step(NamedTuple):
    """One thing to do, why, and how."""

    title: str
    why: str
    codes: tuple[Code, ...] = ()


def _step(*names: str, **known: object) -> Step:
    """One step of ``next_steps.toml``, of one of its tables or several, with what is known in its places."""
    texts = {key: text.format(**known) for name in names for key, text in _TEXTS[name].items()}
    codes = tuple(Code(where, texts[where]) for where in get_args(Where) if where in texts)
    return Step(texts["title"], texts["why"], codes)


def next_steps(summary: Summary, rating: Rating, policy: Policy | None = None) -> tuple[Step, ...]:
    """What fits a finding; the policy is that of the user, for the ε that meets its limit."""
    leak = summary.conclusion.measured is not None and summary.conclusion.leak
    steps = [_step("model file")] if summary.context.stored_records else []
    if not leak or rating.level == "unknown":
        steps += _to_know_more(summary)
    if leak:
        steps += [*_measured(summary), *_to_leak_less(summary, policy), _step("compare")]
    return (*steps, *([] if rating.own else [_step("limits")]))


def _to_know_more(summary: Summary) -> list[Step]:
    reasons = summary.conclusion.reasons
    names = [str(reason) for reason in reasons if reason in _TEXTS]
    if summary.context.shadows < _MORE_SHADOWS and "warning" not in reasons:
        names.append("more shadows")
    if summary.power is not None and summary.power.auc > 0.55:
        names.append("more records")
    return [_step(name, unit=summary.unit, shadows=_MORE_SHADOWS) for name in names]


def _measured(summary: Summary) -> Iterator[Step]:
    """What measured defences advise, in the words of the measurement."""
    if (advice := summary.advice) is not None:
        best, why = advice.advised, " ".join(advice.sentences())
        if best is None:
            yield Step("Look for another defence", why)
        else:
            yield Step(f"Use {best.name}, as measured", why, (Code("python", best.code),))


def _to_leak_less(summary: Summary, policy: Policy | None) -> Iterator[Step]:
    graph, settings = summary.unit == "nodes", summary.context.settings
    trainer, own = str(settings.get("trainer", "")), "loss" in settings  # a loss of the user's own
    forest, told = _FOREST.search(trainer), re.search(r"\bepochs=(\d+)", trainer)
    first = [] if graph else [_private(summary, policy, trainer)]
    if summary.advice is None and not own:  # defences are compared by accuracy
        first.append(_step("advise"))
    kind = "graph" if graph else "forest" if forest else trainer.partition("(")[0]
    if f"gentler {kind}" in _TEXTS:
        known = {"epochs": max(1, int(told[1]) // 2) if told else 10, "forest": forest and forest[0]}
        step = _step("gentler", f"gentler {kind}", **known)
        first.insert(0 if forest else 1, step)  # what keeps the user's own kind of model comes first
    yield from first
    if summary.texts is not None:
        yield _step("few tokens")
    elif not (graph or own) and summary.context.test_rmse is None and settings.get("answers") != "labels alone":
        yield _step("labels")
    column = f"{summary.strongest}_decision"
    decided, ranked = f'row["{column}"] == "True"', f'int(row["{summary.strongest}_rank"]) <= 100'
    yield _step("review", unit=summary.unit, identified=decided if column in summary.top_records else ranked)


def _private(summary: Summary, policy: Policy | None, trainer: str) -> Step:
    epsilon, own = _epsilon(summary, policy), "loss" in summary.context.settings
    more = ""
    if "SklearnTrainer" in trainer or "Boosting" in trainer:
        more = (
            " It trains a network; tree models cannot be trained this way. For a table, add standardise: true to data."
        )
    if own:
        more += " PrivateTrainer trains classifiers; for this model take a library such as Opacus."
    how = "and more noise" if "PrivateTrainer" in trainer else "(DP-SGD)"
    names = ["private"] if own else ["private", "private lines"]
    return _step(*names, how=how, epsilon=epsilon, times=math.exp(epsilon), more=more)


def _epsilon(summary: Summary, policy: Policy | None) -> float:
    """The largest ε, to one digit, that meets the policy's strictest limit on the TPR: TPR ≤ exp(ε) · FPR."""
    ratios = [
        limit.most / limit.at_fpr
        for limit in (policy.limits if policy is not None else ())
        if limit.figure == "tpr" and limit.at_fpr is not None and limit.most > limit.at_fpr
    ]
    ratio = min(ratios, default=FACTOR)
    privacy = summary.privacy
    claimed = privacy.claim.epsilon if privacy is not None and privacy.claim is not None else _FIRST
    bounded = min(math.log(ratio), claimed, _FIRST)
    return max(0.1, math.floor(10 * bounded) / 10)


_LONGEST = 160


def model_words(context: Context) -> str:
    """What trained the model, without the parameters that are listed under "How to repeat it"."""
    trainer = str(context.settings.get("trainer", ""))
    if not trainer or trainer.startswith("none:"):
        return "trained before the audit, which does not know how"
    if trainer.startswith("GNNTrainer"):
        network = re.search(r"architecture='([^']+)'", trainer) if "model=None" in trainer else None
        return f"a graph neural network ({network[1] if network else 'its owner’s'})"
    if trainer.startswith("PrivateTrainer"):
        epsilon = re.search(r"epsilon=([\d.e+-]+)", trainer)
        return f"a network trained with differential privacy (epsilon {epsilon[1] if epsilon else 'not known'})"
    if found := re.search(r"estimator=(\w+)", trainer):
        return found[1]
    if trainer.startswith("TorchTrainer"):
        return "a network trained with PyTorch"
    return trainer if len(trainer) <= _LONGEST else f"{trainer[: _LONGEST - 1]}…"
