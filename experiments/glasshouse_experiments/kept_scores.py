"""The result of an attack on a target, kept in a file with the attack's version and the checksum of the models."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from glasshouse.attacks import Attack
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation import AttackOutcome
from glasshouse.io.files import write_file

__all__ = ["Judged", "Origin", "keep_scores", "kept_scores"]


class Judged(NamedTuple):
    """The result of an attack on a target.

    Args:
        scores: [nodes] of the audited nodes.
        truth: [nodes] which of them trained the target.
        seconds: spent on scoring.
        thresholds: [rates, 4] wanted rate, threshold and the ends of its FPR's interval, if rates were given.
        flag_scores: [nodes] the scores that thresholds judge; empty if no rates were given.
    """

    scores: FloatArray
    truth: BoolArray
    seconds: float
    thresholds: FloatArray = np.empty((0, 4))
    flag_scores: FloatArray = np.empty(0)


class Origin(NamedTuple):
    """What made the scores; kept scores of another origin are not used.

    Args:
        models: a checksum of target and shadow models.
        version: of the attack.
    """

    models: str
    version: int

    @classmethod
    def of(cls, attack: Attack[Any], models: str) -> Self:
        """The origin of an attack on models; raise ``version`` of its class whenever its scores change.

        Example:
            >>> from glasshouse.attacks import BASE
            >>> Origin.of(BASE(), "3f2a")
            Origin(models='3f2a', version=1)
        """
        return cls(models, attack.version)


def keep_scores(path: Path, outcome: AttackOutcome, *, origin: Origin) -> None:
    """Write an outcome and its origin."""
    cuts = [
        (cut.wanted, cut.value, cut.interval.low, cut.interval.high) for cut in (*outcome.thresholds, *outcome.withheld)
    ]
    file = io.BytesIO()
    np.savez(
        file,
        scores=outcome.scores,
        seconds=outcome.seconds,
        thresholds=np.reshape(cuts, (-1, 4)),
        flag_scores=np.empty(0) if not cuts or outcome.flag_scores is None else outcome.flag_scores,
        models=np.array(origin.models),
        version=np.array(origin.version),
    )
    write_file(path, file.getvalue())


def kept_scores(path: Path, truth: BoolArray, *, origin: Origin) -> Judged | None:
    """The kept result; None if the attack has to be run.

    It has to be run if the file is missing or damaged, or of other nodes, other models or another version.
    """
    try:
        # opened here: numpy leaves a file open if it is not an archive
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            scores, cuts = (np.asarray(found[name], dtype=np.float64) for name in ("scores", "thresholds"))
            seconds = float(found["seconds"])
            flags = np.asarray(found["flag_scores"], dtype=np.float64) if len(cuts) else np.empty(0)
            # a file without a version was made by the first one
            maker = Origin(str(found["models"]), int(found["version"]) if "version" in found else 1)
    except (OSError, EOFError, TypeError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    whole = scores.shape == truth.shape and cuts.ndim == 2 and cuts.shape[1] == 4 and bool(np.isfinite(scores).all())
    whole = whole and (not len(cuts) or flags.shape == truth.shape)
    return Judged(scores, truth, seconds, cuts, flags) if whole and maker == origin else None
