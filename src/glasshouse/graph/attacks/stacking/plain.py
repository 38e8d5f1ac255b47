"""An attack that learns nothing, to steady what was learned where a target is unlike the simulated ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glasshouse.arrays import FloatArray
from glasshouse.attacks import BASE
from glasshouse.evidence import Evidence
from glasshouse.graph.attacks.stacking.features import View, gbase_odds
from glasshouse.graph.attacks.stacking.stage import Stage
from glasshouse.numerics import area_under_roc

__all__ = ["Plain", "plain_of"]


@dataclass(frozen=True, kw_only=True)
class Plain:
    """BASE of the node alone, or G-BASE under the masks that serve all targets.

    Args:
        base: BASE, its scale settled by the pool.
        neighbours: whether it is G-BASE.
    """

    base: BASE
    neighbours: bool = False

    def log_odds(self, view: View) -> FloatArray:
        """Log-odds [n] of what is looked at."""
        if self.neighbours:
            return np.asarray(gbase_odds(view, self.base.mode).mean(axis=0))
        alone = view.alone
        return self.base.log_odds(
            Evidence(target_loss=alone.target, shadow_loss=alone.references, shadow_members=alone.members)
        )


def plain_of(stage: Stage) -> Plain:
    """The one that tells simulated targets better, by mean AUC."""
    pool = Evidence(
        target_loss=stage.heard.alone[0], shadow_loss=stage.heard.alone, shadow_members=stage.members
    )  # tuning looks at the pool alone
    base = BASE(mode=stage.mode).tuned(pool)
    found = [Plain(base=base), Plain(base=base, neighbours=True)]
    quality = np.zeros(len(found))
    for k, references in zip(stage.plan.targets.tolist(), stage.plan.references, strict=True):
        view = stage.view(*stage.of_shadow(k), references[:, 0])
        quality += [area_under_roc(one.log_odds(view), stage.members[k]) for one in found]
    return found[int(quality.argmax())]
