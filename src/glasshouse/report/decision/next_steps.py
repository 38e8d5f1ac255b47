"""What to do next: only what fits the finding and the kind of audit, each with lines that Glasshouse runs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from glasshouse.report.decision.conclusion import Reason
from glasshouse.report.decision.evidence import FACTOR
from glasshouse.report.decision.exposure import unit_of
from glasshouse.report.decision.rating import Rating
from glasshouse.report.policy import Policy
from glasshouse.report.summary import Summary

_FOREST = re.compile(r"\b(?:RandomForest|ExtraTrees|DecisionTree|GradientBoosting)(?:Classifier|Regressor)\b")
_MORE_SHADOWS = 8
_FIRST = 10.0  # ε; a larger one bounds nothing that a reader could use


@dataclass(frozen=True, kw_only=True)
class Code:
    """Lines to run or to write: in a shell, in an audit file, or in Python."""

    where: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to do, why, and how."""

    title: str
    why: str
    codes: tuple[Code, ...] = ()


def next_steps(summary: Summary, rating: Rating, policy: Policy | None = None) -> tuple[Step, ...]:
    """What fits a finding; the policy is that of the user, for the ε that meets its limit."""
    leak = summary.conclusion.measured is not None and summary.conclusion.leak
    steps = [*_to_know_more(summary)] if not leak or rating.level == "unknown" else []
    if summary.context.stored_records:
        steps.insert(
            0,
            Step(
                title="Do not give the model file away",
                why="Whoever has it has training records. Let others ask the model instead, or train one of another "
                "kind.",
            ),
        )
    if leak:
        steps += [*_measured(summary), *_to_leak_less(summary, policy)]
        steps.append(
            Step(
                title="Audit again, and compare",
                why="A defence makes a model less useful and may gain little: the comparison shows whether it helped "
                "by more than chance.",
                codes=(Code(where="shell", text="glasshouse compare RUN NEW_RUN"),),
            )
        )
    if not rating.own:
        steps.append(
            Step(
                title="Set your own limits",
                why="Write the limits that your organisation accepts into a file; later audits are then checked by it.",
                codes=(Code(where="shell", text="glasshouse check RUN --policy risk.yaml"),),
            )
        )
    return tuple(steps)


def _to_know_more(summary: Summary) -> Iterator[Step]:
    context, unit, reasons = summary.context, unit_of(summary), summary.conclusion.reasons
    mended: dict[Reason, Step] = {
        "warning": Step(
            title="Fix what the warning describes, and audit again", why="Until then no figure means anything."
        ),
        "members unknown": Step(
            title=f"Say which {unit} trained the model",
            why="Without them nothing can be measured.",
            codes=(Code(where="python", text="result = audit_evidence(evidence, members=members)"),),
        ),
        "members not random": Step(
            title="Draw the training data at random",
            why="Then members and non-members differ only in the training, and an audit shows what the model reveals. "
            "Without members in the audit file, a random half trains the model.",
            codes=(Code(where="audit file", text="target: {kind: train, fraction: 0.5}"),),
        ),
        "mismatch": Step(
            title="Train the shadow models as the model was trained",
            why="The same architecture, optimizer, number of epochs and share of the data.",
        ),
    }
    yield from (mended[reason] for reason in reasons if reason in mended)
    if context.shadows < _MORE_SHADOWS and "warning" not in reasons:
        yield Step(
            title="Use more shadow models",
            why="More of them make the attacks stronger; with few, a leak may stay undetected.",
            codes=(Code(where="shell", text=f"glasshouse audit audit.yaml --shadows {_MORE_SHADOWS}"),),
        )
    if summary.power is not None and summary.power.auc > 0.55:
        yield Step(
            title=f"Audit more {unit}",
            why="A sample of this size shows only a large leak; the expert section says how many a finer audit needs.",
        )


def _measured(summary: Summary) -> Iterator[Step]:
    """What measured defences advise, in the words of the measurement."""
    advice = summary.advice
    if advice is not None:
        title = "Look for another defence" if advice.advised is None else f"Use {advice.advised.name}, as measured"
        codes = () if advice.advised is None else (Code(where="python", text=advice.advised.code),)
        yield Step(title=title, why=" ".join(advice.sentences()), codes=codes)


def _to_leak_less(summary: Summary, policy: Policy | None) -> Iterator[Step]:
    graph = unit_of(summary) == "nodes"
    trainer = str(summary.context.settings.get("trainer", ""))
    first: list[Step] = [] if graph else [_private(summary, policy, trainer)]
    if summary.advice is None:
        first.append(
            Step(
                title="Measure which defence helps this model",
                why="It tries the settings that fit this kind of model, and says what each gains and costs.",
                codes=(Code(where="shell", text="glasshouse advise RUN"),),
            )
        )
    if gentler := _gentler(trainer, graph=graph):
        step = Step(
            title="Fit the training data less closely",
            why="Fewer epochs, early stopping or a simpler model: a model cannot reveal what it did not memorise. This "
            "helps most where the model does far better on the training data than on other data, and guarantees "
            "nothing.",
            codes=gentler,
        )
        first.insert(0 if _FOREST.search(trainer) else 1, step)  # what keeps the user's own kind of model comes first
    yield from first
    if not graph and summary.context.test_rmse is None and summary.context.settings.get("answers") != "labels alone":
        yield Step(
            title="Return only the predicted class",
            why="Without confidences most attacks lose much of their strength, but not all of it. Measure what "
            "remains.",
            codes=_codes("answers: labels", "audit(population, trainer=trainer, attacker=Attacker(query=LabelOnly()))"),
        )
    yield _review(summary)


def _private(summary: Summary, policy: Policy | None, trainer: str) -> Step:
    epsilon = _epsilon(summary, policy)
    how = "and more noise" if "PrivateTrainer" in trainer else "(DP-SGD)"
    why = (
        f"This bounds every attack, including those nobody has tried yet: at this epsilon no attack's true-positive "
        f"rate can exceed {math.exp(epsilon):.1f} times its false-positive rate. The model becomes less useful."
    )
    if "SklearnTrainer" in trainer or "Boosting" in trainer:
        why += (
            " It trains a network; tree models cannot be trained this way. For a table, add standardise: true to data."
        )
    return Step(
        title=f"Train with differential privacy {how}, epsilon {epsilon:g}",
        why=why,
        codes=_codes(
            f"trainer: {{kind: mlp, epsilon: {epsilon:g}, delta: 1.0e-5, epochs: 20}}",
            f"trainer = PrivateTrainer(module=MyNet, epsilon={epsilon:g}, delta=1e-5, epochs=20)",
        ),
    )


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


def _gentler(trainer: str, *, graph: bool) -> tuple[Code, ...]:
    """Lines that make this trainer fit less closely; none for one that is not known."""
    told = re.search(r"\bepochs=(\d+)", trainer)
    epochs = max(1, int(told[1]) // 2) if told else 10
    if graph:
        return _codes(
            f"graph: {{network: {{epochs: {epochs}}}}}", f"trainer = GNNTrainer(model=MyGNN, epochs={epochs})"
        )
    if trainer.startswith("TorchTrainer"):
        return _codes(
            f"trainer: {{kind: mlp, epochs: {epochs}}}",
            "trainer = TorchTrainer(module=MyNet, early_stopping=EarlyStopping(patience=5))",
        )
    if found := _FOREST.search(trainer):
        return _codes(
            f"trainer: {{kind: sklearn, estimator: {found[0]}, parameters: {{min_samples_leaf: 10}}}}",
            f"trainer = SklearnTrainer(estimator={found[0]}(min_samples_leaf=10))",
        )
    return ()


def _codes(audit_file: str, python: str) -> tuple[Code, ...]:
    return Code(where="audit file", text=audit_file), Code(where="python", text=python)


def _review(summary: Summary) -> Step:
    column = f"{summary.strongest}_decision"
    decided, ranked = f'row["{column}"] == "True"', f'int(row["{summary.strongest}_rank"]) <= 100'
    lines = (
        "import csv",
        "",
        'with open("RUN/records.csv", encoding="utf-8") as file:',
        '    members = [row for row in csv.DictReader(file) if row["member"] == "True"]',
        f'identified = [row["id"] for row in members if {decided if column in summary.top_records else ranked}]',
    )
    return Step(
        title=f"Look at the identified {unit_of(summary)}",
        why="They are often mislabelled, rare or duplicated. Correct or remove them before the next training. This "
        "does not protect the rest: other records may then be identified, so audit again.",
        codes=(Code(where="python", text="\n".join(lines)),),
    )


_LONGEST = 160


def model_words(trainer: str) -> str:
    """What trained the model, without the parameters that are listed under "How to repeat it".

    Example:
        >>> model_words("PrivateTrainer(module=<function mlp>, epsilon=3.0, delta=1e-05)")
        'a network trained with differential privacy (epsilon 3.0)'
        >>> model_words("SklearnTrainer(estimator=RandomForestClassifier(n_estimators=200))")
        'RandomForestClassifier'
    """
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
