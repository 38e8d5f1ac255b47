"""What an audit file asks for, judged by the limit on memory before anything is made."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from glasshouse.errors import InputError
from glasshouse.population import Population
from glasshouse.reading import check_memory

__all__ = ["MOST_EPOCHS", "THREADS", "check_estimator", "check_network", "check_shadows"]

MOST_EPOCHS = 10**6  # of a network; more is a slip of the hand, or malice

_COPIES = 4 * 4  # bytes of a weight in float32, with its gradient and two moments of Adam
_TREE = 2**11  # bytes of the smallest tree with what scikit-learn keeps about it
_ROUNDS = {  # how the libraries call the number of trees, or of estimators of any kind
    *("n_estimators", "iterations", "num_boost_round", "num_trees", "num_tree", "num_iterations", "num_iteration"),
    *("num_round", "num_rounds", "nrounds", "n_iter"),
}
# how the libraries call the number of threads
THREADS = frozenset({"n_jobs", "nthread", "nthreads", "num_thread", "num_threads", "n_threads", "thread_count"})
_MOST_THREADS = 1024  # with 100 000, LightGBM and CatBoost end the process
_PER_RECORD = 9  # bytes of a shadow model about a record: the loss, and whether it was a member


def check_network(widths: Sequence[int], *, place: str) -> None:
    """Refuse layers whose weights alone take more than the limit while they are trained.

    Args:
        widths: of the input, of each layer, and of the output.
        place: the key of the file.

    Example:
        >>> check_network([64, 512, 10], place="trainer.hidden")
        >>> check_network([64, 10**11, 10], place="trainer.hidden")
        Traceback (most recent call last):
        glasshouse.errors.InputError: trainer.hidden: training such a network takes 107.6 TiB, and the limit is ...
    """
    weights = sum(first * second for first, second in itertools.pairwise(widths))
    check_memory(weights * _COPIES, place=place, what="training such a network takes")


def check_estimator(parameters: Mapping[str, Any], population: Population, *, rounds: str = "n_estimators") -> None:
    """Refuse parameters of an estimator that make it larger than the limit, before it is trained.

    Args:
        parameters: as the file gives them.
        population: that it is trained on.
        rounds: a further name for the number of trees.

    Example:
        >>> population = Population([[0.0], [1.0]], [0, 1])
        >>> check_estimator({"n_estimators": 500}, population)
        >>> check_estimator({"n_estimators": 10**9}, population)
        Traceback (most recent call last):
        glasshouse.errors.InputError: trainer.parameters: n_estimators: 1000000000 trees take at least 1.8 TiB, and ...
    """
    place = "trainer.parameters"
    for name in sorted({rounds, *_ROUNDS} & parameters.keys()):
        count = _whole(parameters[name]) * max(1, _whole(parameters.get("num_parallel_tree")))
        check_memory(count * _TREE, place=f"{place}: {name}", what=f"{count} trees take at least")
    for name in sorted(THREADS & parameters.keys()):
        if _whole(parameters[name]) > _MOST_THREADS:
            raise InputError(f"{place}: {name}: more than {_MOST_THREADS} threads; use as many as there are cores.")
    layers = parameters.get("hidden_layer_sizes")
    if layers is not None:
        width = math.prod(getattr(population.x, "shape", (0, 1))[1:])  # texts have no shape
        classes = 1 if population.regression else len(population.classes)
        inside = [_whole(one) for one in (layers if isinstance(layers, list) else [layers])]
        check_network([width, *inside, classes], place=f"{place}: hidden_layer_sizes")


def _whole(value: Any) -> int:
    """A number as a whole one; 0 for what is not a number, which the estimator itself refuses."""
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else 0


def check_shadows(shadows: int, records: int) -> None:
    """Refuse more shadow models than what is known about them has room for.

    Example:
        >>> check_shadows(10**8, 2000)
        Traceback (most recent call last):
        glasshouse.errors.InputError: shadows: 100000000 models and 2000 records take 1.6 TiB, and the limit is ...
    """
    check_memory(shadows * records * _PER_RECORD, place="shadows", what=f"{shadows} models and {records} records take")
