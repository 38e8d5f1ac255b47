"""Checked YAML: unknown keys, wrong types, and sizes above the limit on memory; all faults are reported at once."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import pydantic

from glasshouse.core.errors import InputError, shortened
from glasshouse.core.registry import did_you_mean
from glasshouse.data import Population
from glasshouse.io.guarded import guarded, read_settings
from glasshouse.io.limits import check_memory

_SHOWN = 50  # faults of one file

Share = Annotated[float, pydantic.Field(gt=0, lt=1)]
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


class Strict(pydantic.BaseModel):
    """Base of every section: no unknown keys, no silent conversion, nothing changed after reading, no ``.inf``."""

    model_config = pydantic.ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def one_or_more(given: Any) -> Any:
    """One name means a list of one, so that ``attacks: best`` works."""
    return [given] if isinstance(given, str) else given


Section = TypeVar("Section", bound=Strict)


def read_yaml(path: Path, section: type[Section], *, form: bool = False) -> Section:
    """A YAML file as a checked section; an `InputError` names the file and every fault. A ``form`` may be empty."""
    content = read_settings(path, form=form)
    with guarded(path, what="a file of settings"):
        try:
            return section.model_validate(content)
        except pydantic.ValidationError as error:
            raise InputError(*[f"{path}: {fault}" for fault in faults_of(error, section)]) from error


def faults_of(error: pydantic.ValidationError, section: type[Strict]) -> list[str]:
    """One line per fault: where it is, what is wrong, what would be right."""
    found = error.errors()
    more = len(found) - _SHOWN
    return [*(_fault(one, section) for one in found[:_SHOWN]), *([f"and {more} more faults."] if more > 0 else [])]


def _fault(one: Any, section: type[Strict]) -> str:
    # the location also holds the tag of a tagged section, which is not a key of the file
    location = [part for part in one["loc"] if not (isinstance(part, str) and part in _tags(section))]
    parts = [f"[{one}]" if isinstance(one, int) else f".{shortened(str(one), quoted=False)}" for one in location]
    place = "".join(parts).lstrip(".")
    match one["type"]:
        case "extra_forbidden":
            elsewhere = str(location[-1]) in _keys(section)
            hint = " Another section has it." if elsewhere else did_you_mean(str(location[-1]), _keys(section))
            return f"{place}: is not a key here.{hint}"
        case "missing":
            return f"{place}: is missing."
        case "value_error":
            return f"{place}: {one['ctx']['error']}" if place else str(one["ctx"]["error"])
        case "union_tag_invalid":
            return f"{place}: {shortened(one['ctx']['tag'])} is not known. Known: {one['ctx']['expected_tags']}."
        case "union_tag_not_found":
            return f"{place}: needs {one['ctx']['discriminator']}, which decides what the other keys mean."
        case "model_attributes_type" | "model_type":
            return f"{place}: needs keys of its own, such as {place}: {{…: …}}, but is {shortened(one['input'])}."
        case "string_type" if isinstance(one["input"], bool | int | float):
            return f"{place}: YAML reads {shortened(one['input'])} as a number or a yes/no value; write it in quotes."
        case _:
            return f"{place}: {one['msg']}, but is {shortened(one['input'])}."


@functools.cache
def _properties(section: type[Strict]) -> list[tuple[str, Any]]:
    """The keys of a section and of all sections in it, with their schemas."""
    schema = section.model_json_schema()
    parts = (schema, *schema.get("$defs", {}).values())
    return [one for part in parts for one in part.get("properties", {}).items()]


def _tags(section: type[Strict]) -> set[str]:
    """The values that decide which of several sections is meant, such as the kinds of trainers."""
    choices = [choice for _, key in _properties(section) for choice in (key, *key.get("anyOf", []))]
    return {tag for choice in choices for tag in choice.get("discriminator", {}).get("mapping", {})}


def _keys(section: type[Strict]) -> set[str]:
    return {name for name, _ in _properties(section)}


def check_network(widths: Sequence[int], *, place: str) -> None:
    """Refuse layers whose weights take more than the limit while they are trained; the first width is the input's."""
    weights = sum(first * second for first, second in itertools.pairwise(widths))
    check_memory(weights * _COPIES, place=place, what="training such a network takes")


def check_estimator(parameters: Mapping[str, Any], population: Population, *, rounds: str = "n_estimators") -> None:
    """Refuse an estimator larger than the limit before it is trained; ``rounds`` is a further name for its trees."""
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
    """Refuse more shadow models than what is known about them has room for."""
    check_memory(shadows * records * _PER_RECORD, place="shadows", what=f"{shadows} models and {records} records take")
