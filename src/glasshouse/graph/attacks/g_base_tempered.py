"""G-BASE with a temperature and with an estimate of the ratio Λ of Theorem 1, both tuned on simulated targets."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from glasshouse.attacks import Judgement, register
from glasshouse.attacks.base import Number, Signals, best_numbers, check_numbers, excess_of_certainty, tempered_odds
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.graph.attacks.g_base import GBASE
from glasshouse.graph.scene import Scene


@register("g-base-tempered")
@dataclass(frozen=True, kw_only=True)
class TemperedGBASE(GBASE):
    r"""Like G-BASE, but with signals divided by T, and c times the node's excess of certainty added to the log-odds.

    :math:`\frac1M \sum_i \sigma(-S_\theta/T - \log\frac1K \sum_k e^{-S_k/T} + cE + \log\frac{\lambda}{1-\lambda})`,
    where E is by how much the target's answer about the node alone has less entropy than those of the shadow models. On
    overfitted models this finds more than G-BASE, whose posterior it no longer is (`benchmarks/paper/tempered.md`).

    Args:
        temperature: T; ``"auto"`` is tuned on simulated targets.
        ratio: c; ``"auto"`` is tuned on simulated targets. With T = 1 and c = 0 this is G-BASE.

    Example:
        >>> TemperedGBASE(temperature=2.0).label
        'g-base-tempered-mia'
    """

    posterior: ClassVar[bool] = False
    candidate: ClassVar[bool] = False

    temperature: Number = "auto"
    ratio: Number = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self.temperature, self.ratio)

    def tuned(self, scene: Scene) -> Self:
        """The same attack with what its sampler learns, and with T and c chosen on simulated targets."""
        learned = super().tuned(scene)
        if "auto" not in (self.temperature, self.ratio):
            return learned
        simulated = []
        for number, target in enumerate(scene.simulated()):
            own = dataclasses.replace(self._for_simulated(scene, number), temperature=1.0, ratio=0.0)
            drawn = own._drawn(target.view)
            simulated.append((own._with_certainty(target.view, drawn.signals, drawn.usable), target.members))
        temperature, ratio = best_numbers(simulated, self.temperature, self.ratio)
        return dataclasses.replace(learned, temperature=temperature, ratio=ratio)

    def _with_certainty(self, scene: Scene, signals: FloatArray, usable: BoolArray | None) -> Signals:
        """Signals [1 + K, M, nodes] of the target and the shadow models, with the excess of certainty of each node."""
        alone = scene.of_nodes(scene.zero_hop)
        answers = np.asarray(alone.target_logits), np.asarray(alone.shadow_logits)
        return Signals(signals[0], signals[1:], usable, excess_of_certainty(*answers, usable))

    def judge(self, scene: Scene) -> Judgement:
        """Scores of the scene's audited nodes, and figures of its sampler."""
        return GBASE.judge(self.tuned(scene), scene)

    def _log_odds(self, scene: Scene, signals: FloatArray, usable: BoolArray | None) -> FloatArray:
        """Log-odds without the prior, [M, nodes]; T and c are chosen by then."""
        found = self._with_certainty(scene, signals, usable)
        return tempered_odds(found, float(self.temperature), float(self.ratio))
