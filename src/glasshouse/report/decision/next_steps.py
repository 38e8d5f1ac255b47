"""What to do next: only what fits the finding and the kind of audit, each with lines that Glasshouse runs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from glasshouse.report.decision.conclusion import FACTOR, Reason
from glasshouse.report.decision.rating import Rating
from glasshouse.report.policy import Policy
from glasshouse.report.summary import Summary

_FOREST = re.compile(r"\b(?:RandomForest|ExtraTrees|DecisionTree|GradientBoosting)(?:Classifier|Regressor)\b")
_MORE_SHADOWS = 8
_FIRST = 10.0  # ε; a larger one bounds nothing that a reader could use


class Code(NamedTuple):
    """Lines to run or to write."""

    where: Literal["shell", "audit file", "python"]
    text: str


class Step(NamedTuple):
    """One thing to do, why, and how."""

    title: str
    why: str
    codes: tuple[Code, ...] = ()


def next_steps(summary: Summary, rating: Rating, policy: Policy | None = None) -> tuple[Step, ...]:
    """What fits a finding; the policy is that of the user, for the ε that meets its limit."""
    leak = summary.conclusion.measured is not None and summary.conclusion.leak
    steps = []
    if summary.context.stored_records:
        why = "Whoever has it has training records. Let others ask the model instead, or train one of another kind."
        steps.append(Step("Do not give the model file away", why))
    if not leak or rating.level == "unknown":
        steps += _to_know_more(summary)
    if leak:
        steps += [*_measured(summary), *_to_leak_less(summary, policy)]
        why = (
            "A defence makes a model less useful and may gain little: the comparison shows whether it helped by more "
            "than chance."
        )
        steps.append(Step("Audit again, and compare", why, _shell("glasshouse compare RUN NEW_RUN")))
    if not rating.own:
        why = "Write the limits that your organisation accepts into a file; later audits are then checked by it."
        steps.append(Step("Set your own limits", why, _shell("glasshouse check RUN --policy risk.yaml")))
    return tuple(steps)


def _shell(line: str) -> tuple[Code]:
    return (Code("shell", line),)


def _to_know_more(summary: Summary) -> Iterator[Step]:
    context, unit, reasons = summary.context, summary.unit, summary.conclusion.reasons
    mended: dict[Reason, Step] = {
        "warning": Step("Fix what the warning describes, and audit again", "Until then no figure means anything."),
        "members unknown": Step(
            f"Say which {unit} trained the model",
            "Without them nothing can be measured.",
            (Code("python", "result = audit_evidence(evidence, members=members)"),),
        ),
        "members not random": Step(
            "Draw the training data at random",
            "Then members and non-members differ only in the training, and an audit shows what the model reveals. "
            "Without members in the audit file, a random half trains the model.",
            (Code("audit file", "target: {kind: train, fraction: 0.5}"),),
        ),
        "mismatch": Step(
            "Train the shadow models as the model was trained",
            "The same architecture, optimizer, number of epochs and share of the data.",
        ),
    }
    yield from (mended[reason] for reason in reasons if reason in mended)
    if context.shadows < _MORE_SHADOWS and "warning" not in reasons:
        why = "More of them make the attacks stronger; with few, a leak may stay undetected."
        yield Step("Use more shadow models", why, _shell(f"glasshouse audit audit.yaml --shadows {_MORE_SHADOWS}"))
    if summary.power is not None and summary.power.auc > 0.55:
        why = "A sample of this size shows only a large leak; the expert section says how many a finer audit needs."
        yield Step(f"Audit more {unit}", why)


def _measured(summary: Summary) -> Iterator[Step]:
    """What measured defences advise, in the words of the measurement."""
    if (advice := summary.advice) is not None:
        best, why = advice.advised, " ".join(advice.sentences())
        if best is None:
            yield Step("Look for another defence", why)
        else:
            yield Step(f"Use {best.name}, as measured", why, (Code("python", best.code),))


def _to_leak_less(summary: Summary, policy: Policy | None) -> Iterator[Step]:
    graph = summary.unit == "nodes"
    trainer = str(summary.context.settings.get("trainer", ""))
    own = "loss" in summary.context.settings  # a loss of the user's own: defences are compared by accuracy
    first: list[Step] = [] if graph else [_private(summary, policy, trainer)]
    if summary.advice is None and not own:
        why = "It tries the settings that fit this kind of model, and says what each gains and costs."
        first.append(Step("Measure which defence helps this model", why, _shell("glasshouse advise RUN")))
    if gentler := _gentler(trainer, graph=graph):
        why = (
            "Fewer epochs, early stopping or a simpler model: a model cannot reveal what it did not memorise. This "
            "helps most where the model does far better on the training data than on other data, and guarantees "
            "nothing."
        )
        step = Step("Fit the training data less closely", why, gentler)
        first.insert(0 if _FOREST.search(trainer) else 1, step)  # what keeps the user's own kind of model comes first
    yield from first
    if summary.texts is not None:
        why = "An attacker needs the log-probabilities of tokens. Measure what those of the few likeliest give away."
        lines = "audit(population, trainer=trainer, loss=TokenLoss(top=5))"
        yield Step("Return no log-probabilities, or a few", why, (Code("python", lines),))
    elif (
        not (graph or own)
        and summary.context.test_rmse is None
        and summary.context.settings.get("answers") != "labels alone"
    ):
        why = "Without confidences most attacks lose much of their strength, but not all of it. Measure what remains."
        python = "audit(population, trainer=trainer, attacker=Attacker(query=LabelOnly()))"
        yield Step("Return only the predicted class", why, _codes("answers: labels", python))
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
    title = f"Train with differential privacy {how}, epsilon {epsilon:g}"
    if "loss" in summary.context.settings:
        return Step(title, f"{why} PrivateTrainer trains classifiers; for this model take a library such as Opacus.")
    return Step(
        title,
        why,
        _codes(
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
        file = f"graph: {{network: {{epochs: {epochs}}}}}"
        return _codes(file, f"trainer = GNNTrainer(model=MyGNN, epochs={epochs})")
    if trainer.startswith("TorchTrainer"):
        return _codes(
            f"trainer: {{kind: mlp, epochs: {epochs}}}",
            "trainer = TorchTrainer(module=MyNet, early_stopping=EarlyStopping(patience=5))",
        )
    if trainer.startswith("CausalLMTrainer"):
        return (Code("python", f"trainer = CausalLMTrainer(module=make_model, epochs={epochs})"),)
    if found := _FOREST.search(trainer):
        return _codes(
            f"trainer: {{kind: sklearn, estimator: {found[0]}, parameters: {{min_samples_leaf: 10}}}}",
            f"trainer = SklearnTrainer(estimator={found[0]}(min_samples_leaf=10))",
        )
    return ()


def _codes(audit_file: str, python: str) -> tuple[Code, ...]:
    return Code("audit file", audit_file), Code("python", python)


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
        f"Look at the identified {summary.unit}",
        "They are often mislabelled, rare or duplicated. Correct or remove them before the next training. This "
        "does not protect the rest: other records may then be identified, so audit again.",
        (Code("python", "\n".join(lines)),),
    )


_LONGEST = 160


def model_words(trainer: str) -> str:
    """What trained the model, without the parameters that are listed under "How to repeat it"."""
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
