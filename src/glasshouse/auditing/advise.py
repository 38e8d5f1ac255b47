"""Which defence helps: each is tried through the same kind of pool and attacks, the advised one on a fresh target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from glasshouse.auditing.defences import Defence
from glasshouse.auditing.options import Attacker, documented
from glasshouse.auditing.targets import audit_of
from glasshouse.auditing.trials import too_long, tried
from glasshouse.core.errors import InputError
from glasshouse.report.advice import Advice
from glasshouse.training.trainer import Trainer


@documented
def advise(
    data: Any,
    *,
    trainer: Trainer | Any,
    model: Any = None,
    members: ArrayLike | None = None,
    defences: Sequence[Defence] | None = None,
    minutes: float | None = None,
    most_accuracy: float = 0.01,
    confidence: float = 0.95,
    shadows: int = 8,
    attacker: Attacker = Attacker(),
    pool: Path | str | None = None,
    seed: int = 0,
    progress: bool | None = None,
    **options: Any,
) -> Advice:
    """Try the defences that fit a model, and advise the one that leaks least at little cost in accuracy.

    Each defence trains a target and shadow models of its own; one that only changes the answers uses those of the model
    as it is. It is chosen on simulated targets alone, by the strongest attack there; the figures of its target decide
    nothing, and a fresh target with other members shows whether they hold.

    Args:
        data: a `Population` for `glasshouse.audit`, or a graph for `glasshouse.graph.audit`.
        trainer: ``(data, members, seed) -> model``, or an estimator, as the target was trained.
        defences: what to try; by default what `defences_for` proposes for this trainer.
        minutes: what is not begun by then is left out, and the advice says so. By default there is no limit.
        most_accuracy: how much accuracy on non-members the advised defence may cost, 0.01 for one point.
        confidence: of all intervals together.
        pool: the folder for the shadow pools, one for each defence: an advice that was stopped goes on there.
        options: of `glasshouse.audit` or `glasshouse.graph.audit`.

    Example:
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from glasshouse import Population
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(300, 3))
        >>> population = Population(x, (x[:, 0] + rng.normal(size=300) > 0).astype(int))
        >>> found = advise(population, trainer=DecisionTreeClassifier(), shadows=4, attacks=["base"], progress=False)
        >>> found.advised.leak < found.before.leak
        True
    """
    how: dict[str, Any] = {"defences": defences, "most_accuracy": most_accuracy, "confidence": confidence}
    asked: dict[str, Any] = {"model": model, "members": members, "attacker": attacker, "pool": pool, "seed": seed}
    options |= {"shadows": shadows, "progress": progress}
    run = audit_of(data)
    _, found = tried(run, data, trainer=trainer, budget=minutes, apart=True, **how, **asked, **options)
    if not found.tried and minutes is not None and too_long(minutes) in found.left_out.values():
        raise InputError(f"minutes: {minutes:g} is too little for any defence. Give more.")
    return found
