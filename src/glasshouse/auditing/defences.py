"""Defences that fit a user's own way to train: gentler settings of it, noise, and answers that reveal less.

A defence is another trainer, or another way to answer, or leaves out the most exposed records. `DEFENCES` holds, by the
type of a trainer, what proposes them; another room or a user registers more.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.data import Population
from glasshouse.evaluation.roc import SortedScores, checked
from glasshouse.evidence import Evidence
from glasshouse.query.classify import CoarseAnswers, QueryOptions, query
from glasshouse.query.labels_only import LabelOnly
from glasshouse.training.sklearn import SklearnTrainer, fresh
from glasshouse.training.trainer import Trainer

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class Defence:
    """One change that may reveal less.

    Args:
        name: what is changed, as a table shows it: ``"min_samples_leaf=10"``.
        trainer: trains with the change; None if models stay as they are.
        query: how the model then answers; None if it answers as before.
        exposed: share of the records, those that `most_exposed` finds, that count ``weight`` times in the training.
        weight: of these records; with 0 they train no model and are not judged.
        code: a line of Python that makes the change.
    """

    name: str
    trainer: Trainer | None = None
    query: QueryOptions | None = None
    exposed: float = 0.0
    weight: float = 0.0
    code: str = ""

    @property
    def trains(self) -> bool:
        """Whether it needs other models, and not only other answers."""
        return self.trainer is not None or self.exposed > 0


Propose = Callable[[Any, Any], Iterator[Defence]]  # from a trainer and its data
DEFENCES: dict[str, Propose] = {}


def register_defences(trainer: str) -> Callable[[Propose], Propose]:
    """Propose defences for trainers of a type, by its name; subclasses are not included.

    Example:
        >>> @register_defences("OwnTrainer")
        ... def gentler(trainer, data):
        ...     yield Defence(name="epochs=5", trainer=trainer)
        >>> DEFENCES.pop("OwnTrainer") is gentler
        True
    """

    def add(propose: Propose) -> Propose:
        DEFENCES[trainer] = propose
        return propose

    return add


def defences_for(trainer: Any, data: Any) -> list[Defence]:
    """What fits a trainer and its data, the usual first choice first."""
    propose = DEFENCES.get(type(trainer).__name__)
    found = [] if propose is None else list(propose(trainer, data))
    return [*found, *(_of_records(trainer, data) if isinstance(data, Population) and not data.regression else ())]


def _of_records(trainer: Any, data: Population) -> Iterator[Defence]:
    """The most exposed records are left out, or count less; or answers reveal less, and the models stay as they are."""
    yield Defence(
        name="without the 10 % most exposed",
        exposed=0.1,
        code="kept = ~most_exposed(result.evidence, 0.1)  # train on these alone",
    )
    if isinstance(trainer, SklearnTrainer) and trainer.weighted_by is not None:
        yield Defence(
            name="the 10 % most exposed count a tenth",
            exposed=0.1,
            weight=0.1,
            code="SklearnTrainer(…, weights=np.where(most_exposed(result.evidence, 0.1), 0.1, 1.0))",
        )
    for digits in (2, 1):
        yield Defence(
            name=f"{digits} decimal{'s' if digits > 1 else ''}",
            query=CoarseAnswers(digits=digits),
            code=f"probabilities.round({digits})",
        )
    if len(data.classes) > 2:
        yield Defence(
            name="top class only",
            query=CoarseAnswers(top=1, digits=2),
            code="label, confidence = probabilities.argmax(1), probabilities.max(1).round(2)",
        )
    if getattr(data.features, "dtype", None) is not None:  # records that noise can be added to
        yield Defence(name="labels alone", query=LabelOnly(), code="probabilities.argmax(1)")


class _Rule(NamedTuple):
    """A parameter of estimators that makes them fit less closely."""

    values: tuple[Any, ...]  # to try; a factor on the present value where ``scale``
    larger: bool  # whether larger values are gentler
    scale: bool = False


# by the name of a parameter, in scikit-learn, XGBoost, LightGBM and CatBoost alike
_RULES: dict[str, _Rule] = {
    "min_samples_leaf": _Rule((5, 20), larger=True),
    "min_child_samples": _Rule((50, 200), larger=True),
    "min_data_in_leaf": _Rule((20, 100), larger=True),
    "min_child_weight": _Rule((10, 50), larger=True),
    "max_depth": _Rule((8, 4), larger=False),
    "depth": _Rule((4, 2), larger=False),
    "ccp_alpha": _Rule((0.002,), larger=True),
    "C": _Rule((0.1, 0.01), larger=False, scale=True),
    "alpha": _Rule((10.0, 100.0), larger=True, scale=True),
    "l2_regularization": _Rule((1.0, 10.0), larger=True),
    "reg_lambda": _Rule((10.0, 100.0), larger=True),
    "l2_leaf_reg": _Rule((30.0,), larger=True),
    "max_iter": _Rule((0.25,), larger=False, scale=True),
    "n_neighbors": _Rule((5.0,), larger=True, scale=True),
    "var_smoothing": _Rule((1e3,), larger=True, scale=True),
}
_FIXED = {"early_stopping": True}  # switches that help by themselves
_BOOSTING = ("Boost", "XGB", "LGBM")  # fewer trees fit less closely; of a forest they are only noisier
_ITERATIVE = ("HistGradientBoosting", "MLP")  # where the number of passes is a choice, and not a limit of a solver


@register_defences("SklearnTrainer")
def estimator_defences(trainer: SklearnTrainer, data: Population) -> Iterator[Defence]:
    """An estimator's own regularisers, also inside a pipeline: gentler than its present values, two of each."""
    parameters = trainer.estimator.get_params(deep=True)
    proposed = [(path, value) for path in parameters for value in _gentler(trainer.estimator, path, parameters)]
    order = {name: place for place, name in enumerate([*_RULES, *_FIXED, "n_estimators", "iterations"])}
    for path, value in sorted(proposed, key=lambda one: order[one[0].rpartition("__")[2]]):
        changed = fresh(trainer.estimator)
        try:
            changed.set_params(**{path: value})
        except (TypeError, ValueError):  # a parameter that only looks like the one that is meant
            continue
        shown = f"{value:g}" if isinstance(value, float) else value
        yield Defence(
            name=f"{path.rpartition('__')[2]}={shown}",
            trainer=dataclasses.replace(trainer, estimator=changed),
            code=f"estimator.set_params({path}={value!r})",
        )


def _gentler(estimator: Any, path: str, parameters: dict[str, Any]) -> Iterator[Any]:
    """Values of one parameter that fit less closely than the present one."""
    owner, _, name = path.rpartition("__")
    kind = type(parameters[owner] if owner else estimator).__name__
    present = parameters[path]
    if name in _FIXED and any(one in kind for one in _ITERATIVE) and present is not _FIXED[name]:
        yield _FIXED[name]
    if name in ("n_estimators", "iterations") and any(one in kind for one in _BOOSTING):
        if isinstance(present, int) and present >= 8:
            yield present // 4
    elif name in _RULES and not (name == "max_iter" and not any(one in kind for one in _ITERATIVE)):
        rule = _RULES[name]
        missing = present is None or (isinstance(present, int | float) and present < 0)  # no limit
        if missing and (rule.scale or isinstance(present, bool)):
            return
        for value in rule.values:
            if not missing and not isinstance(present, int | float):
                return
            new = type(present)(present * value) if rule.scale else value
            if missing or (new > present if rule.larger else new < present):
                yield new


@register_defences("TorchTrainer")
def module_defences(trainer: Any, data: Population) -> Iterator[Defence]:
    """Fewer epochs, early stopping, weight decay, label smoothing, dropout, and DP-SGD where Opacus is installed."""
    from glasshouse.training import EarlyStopping

    def changed(name: str, code: str = "", **change: Any) -> Defence:
        code = code or f"TorchTrainer(…, {name})"
        return Defence(name=name, trainer=dataclasses.replace(trainer, **change), code=code)

    for part in (2, 4):
        if (epochs := trainer.epochs // part) >= 1:
            yield changed(f"epochs={epochs}", epochs=epochs)
    if trainer.early_stopping is None and not data.regression:
        code = "TorchTrainer(…, early_stopping=EarlyStopping(patience=5))"
        yield changed("early stopping", code, early_stopping=EarlyStopping(patience=5))
    for decay in (1e-3, 1e-2):
        code = f"TorchTrainer(…, optimizer=functools.partial(torch.optim.Adam, weight_decay={decay:g}))"
        optimizer = functools.partial(trainer.optimizer, weight_decay=decay)
        yield changed(f"weight_decay={decay:g}", code, optimizer=optimizer)
    if not trainer.label_smoothing and not data.regression:
        yield changed("label_smoothing=0.2", label_smoothing=0.2)
    module = functools.partial(with_dropout, trainer.module, 0.5)
    yield changed("dropout=0.5", "nn.Dropout(0.5)  # before the last layer", module=module)
    if importlib.util.find_spec("opacus") is not None and not data.regression:
        from glasshouse.training.libraries import PrivateTrainer

        for epsilon in (8.0, 2.0):
            epochs = min(trainer.epochs, 20)
            yield Defence(
                name=f"DP-SGD, ε = {epsilon:g}",
                trainer=PrivateTrainer(module=trainer.module, epsilon=epsilon, delta=1e-5, epochs=epochs),
                code=f"PrivateTrainer(module=…, epsilon={epsilon:g}, delta=1e-5)",
            )


def with_dropout(make: Callable[[], nn.Module], share: float) -> nn.Module:
    """A module whose dropout layers drop this share; without any, one is put before its last linear layer."""
    from torch import nn

    module = make()
    layers = [part for part in module.modules() if isinstance(part, nn.Dropout)]
    for layer in layers:
        layer.p = share
    linear = [name for name, part in module.named_modules() if isinstance(part, nn.Linear) and name]
    if not layers and linear:
        module.set_submodule(linear[-1], nn.Sequential(nn.Dropout(share), module.get_submodule(linear[-1])))
    elif not layers:
        raise InputError("module: it has neither dropout nor a linear layer to put it before.")
    return module


def most_exposed(evidence: Evidence, share: float = 0.1) -> BoolArray:
    """[N] the records on which shadow models differ most by whether they were trained on them.

    The target and its members do not count. A record's exposure is the difference of the two means of its margin (for a
    regression, of its residual) over its standard deviation; the variance is the mean of its own and that of all
    records, since few models say little about one record.

    Args:
        evidence: with at least one shadow model inside and one outside of each record.
        share: of the records.

    Example:
        >>> losses, members = [[0.1, 1.0], [2.0, 1.1]], [[1, 0], [0, 1]]
        >>> evidence = Evidence(target_loss=[1.0, 1.0], shadow_loss=losses, shadow_members=members)
        >>> most_exposed(evidence, 0.5)
        array([ True, False])
    """
    if not 0 < share < 1:
        raise InputError(f"share: {share:g} is not a share of the records between 0 and 1.")
    for inside in (True, False):
        evidence.require_side(inside=inside)
    margins, members = evidence.shadow_statistic, evidence.shadow_members
    sides = [np.where(side, margins, np.nan) for side in (members, ~members)]  # [K, N] each
    inner, outer = (np.nanmean(side, axis=0) for side in sides)
    variance = np.mean([np.nanvar(side, axis=0) for side in sides], axis=0)
    gap = np.abs(inner - outer) if evidence.regression else inner - outer
    exposure = gap / np.sqrt((variance + variance.mean()) / 2 + np.finfo(float).tiny)
    found = np.zeros(evidence.records, dtype=np.bool_)
    found[np.argsort(-exposure, kind="stable")[: max(1, round(share * len(found)))]] = True
    return found


def counting_less(trainer: Any, exposed: BoolArray, weight: float) -> SklearnTrainer:
    """The same trainer, for which some records [N] count as a part of a record."""
    if not isinstance(trainer, SklearnTrainer):
        raise InputError("trainer: only an estimator takes weights of records.")
    before = np.ones(len(exposed)) if trainer.weights is None else np.asarray(trainer.weights, dtype=np.float64)
    return dataclasses.replace(trainer, weights=np.where(exposed, weight * before, before))


def accuracy_on(model: Any, population: Population, others: BoolArray) -> float:
    """The accuracy of a model on the records ``others``, [N]: also on those that were left out of an audit."""
    return float(query(model, population.at(others)).correct.mean())


def effect(
    before: FloatArray, after: FloatArray, *, members: BoolArray, exposed: BoolArray, fpr: float, weight: float
) -> str:
    """What became of the exposed records and of the others, in words, at one false-positive rate.

    ``before`` and ``after`` are the scores [N] of two targets with the same members. Records that nobody trains on any
    more (weight 0) are not judged: what is said is about the others, and by their own threshold before and after.
    """
    judged = np.ones_like(exposed) if weight else ~exposed
    cuts = [SortedScores.of(*checked(scores[judged], members[judged])).cut_at(fpr) for scores in (before, after)]
    found = [scores >= cut for scores, cut in zip((before, after), cuts, strict=True)]
    rest = members & ~exposed
    was, now = (flags & rest for flags in found)
    new = int((now & ~was).sum())
    told = f"{int(exposed.sum())} records ({100 * exposed.mean():.0f} %), the most exposed by shadow models, "
    if weight:
        inside = members & exposed
        told += (
            f"count {weight:g} times: of their {int(inside.sum())} members {int((found[0] & inside).sum())} were "
            f"identified before and {int((found[1] & inside).sum())} are now."
        )
    else:
        told += "train no model and are not judged; accuracy is on all non-members."
    told += f" Of the {int(rest.sum())} other members {int(was.sum())} were identified before, {int(now.sum())} are now"
    if new:
        told += f"; {new} of these were not before: a new training moves some by chance, and "
        told += "where the most exposed are gone, others become so (Carlini et al. 2022)"
    return f"{told}."
