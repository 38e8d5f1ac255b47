"""Desks: what users bring, as one in a hurry writes it, each with a truth of its own.

Run: python benchmarks/robustness/desks.py [NAME …]; writes desks.md.

A desk trains a target by itself, gives it to an audit with two shadow models, and computes by the library's own call
what the audit should find: the AUC of a threshold on the target's loss. Both must agree to 1e-6.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse import InputError
from glasshouse.core.numerics import area_under_roc

ABOUT = """\
Each desk is what a user brings, written as one in a hurry writes it (`benchmarks/robustness/desks*.py`). Its truth is
its own: the AUC of a threshold on the target's loss, from the library's own call, beside that of the audit's attack
`loss`; of a graph, about each node alone. *right*: they agree to 1e-6; *refused*: one line that says what works;
*wrong*: anything else. Seconds are of the clock, for the training of the target and the audit with two shadow models,
on a machine whose two cores were shared.

"""


class Found(NamedTuple):
    """What a desk gives: the audit, and the loss of the target on every audited record, in the audit's order."""

    result: Any
    losses: NDArray[Any]
    members: NDArray[np.bool_]


DESKS: dict[str, tuple[str, Callable[[], Found]]] = {}
QUICK: dict[str, Any] = {"shadows": 2, "attacks": ["loss", "base"], "progress": False}


def desk(part: str, name: str) -> Callable[[Callable[[], Found]], Callable[[], Found]]:
    """Add a desk to the table."""

    def add(function: Callable[[], Found]) -> Callable[[], Found]:
        DESKS[name] = (part, function)
        return function

    return add


def cross_entropy(rows: Any, columns: Any) -> NDArray[Any]:
    """[N] losses of probabilities [N, C], or [N] of the second of two classes, by columns [N] of the true classes."""
    rows = np.asarray(rows, dtype=np.float64)
    rows = rows if rows.ndim == 2 and rows.shape[1] > 1 else np.stack([1 - rows.reshape(-1), rows.reshape(-1)], axis=1)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(rows[np.arange(len(rows)), columns]))


def softmax_losses(logits: Any, columns: Any) -> NDArray[Any]:
    """The same from logits [N, C]."""
    logits = np.asarray(logits, dtype=np.float64)
    total = np.log(np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1)) + logits.max(axis=1)
    return np.asarray(total - logits[np.arange(len(logits)), columns])


def judged(function: Callable[[], Found]) -> tuple[str, str, float]:
    """The word for a desk, what it showed, and seconds."""
    began = time.perf_counter()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            found = function()
    except InputError as error:
        return "refused", str(error).splitlines()[0], time.perf_counter() - began
    except ImportError as error:
        return "not tried", f"{error.name} is not installed", 0.0
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}".splitlines()[0], time.perf_counter() - began
    seconds = time.perf_counter() - began
    theirs = found.result.outcomes["loss"].metrics.auc
    own = area_under_roc(-found.losses, found.members)
    word = "right" if abs(theirs - own) < 1e-6 and np.isfinite(found.losses).any() else "wrong"
    said = found.result.context.notes + found.result.context.warnings
    short = "; ".join(text.split(".")[0] for text in said)[:160]
    return word, f"{theirs:.3f} and {own:.3f}. {short}", seconds


def main(names: list[str]) -> None:
    """Try the named desks, or all; write the table if all were tried."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    import desks_graphs
    import desks_records  # noqa: F401 (they add their desks)

    assert desks_graphs is not None
    rows = []
    for name, (part, function) in DESKS.items():
        if names and not any(one in f"{part} {name}" for one in names):
            continue
        word, shown, seconds = judged(function)
        rows.append((part, name, word, shown, seconds))
        print(f"{word:9} {seconds:6.1f} s  {part}: {name}: {shown[:180]}", flush=True)
    words = [word for _, _, word, _, _ in rows]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    print(counts)
    if names:
        return
    lines = [
        "# At their desks",
        "",
        ABOUT + f"{len(rows)} desks: {counts}.",
        "",
        "| part | desk | | seconds | audit and truth |",
    ]
    lines += ["| --- | --- | --- | --- | --- |"]
    for part, name, word, shown, seconds in rows:
        cell = shown.replace("|", "\\|")
        lines.append(f"| {part} | {name} | {word} | {seconds:.1f} | {cell} |")
    lines += ["", "Made by `python benchmarks/robustness/desks.py`."]
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.modules["desks"] = sys.modules["__main__"]
    main(sys.argv[1:])
