"""The audit file as a whole: what to audit, with which attacks, and where the result goes."""

from __future__ import annotations

import dataclasses
import logging
import math
import re
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
import pydantic
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from glasshouse.attacks import attack_names, create
from glasshouse.attacks.attack import find_attack
from glasshouse.auditing.advise import advise
from glasshouse.auditing.options import GROUPS
from glasshouse.auditing.plan import read_plan
from glasshouse.auditing.result import AuditResult
from glasshouse.auditing.targets import audit_of
from glasshouse.compute import Compute, ThisProcess
from glasshouse.config.data import Data, DigitsData
from glasshouse.config.graph import GraphSection
from glasshouse.config.trainers import TrainerSection
from glasshouse.config.trust import called, check_code
from glasshouse.config.yaml_model import Share, Strict, check_shadows, faults_of, one_or_more, read_yaml
from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError, first_line, raise_faults, shortened
from glasshouse.core.escape import visible
from glasshouse.data import as_members, random_subsets
from glasshouse.data.named import Dataset
from glasshouse.io.limits import process_limit
from glasshouse.query.labels_only import LabelOnly
from glasshouse.report.advice import Advice

_Seed = Annotated[int, Field(ge=0, le=2**63)]
_Whole = Annotated[int, Field(ge=-(10**6), le=10**6)]  # epochs or folds; more is a slip of the hand, or malice
_Width = Annotated[int, Field(ge=-(10**5), le=10**5)]
# by how a class writes the type of a parameter: what a value of a file must be, and how an error calls it
_KINDS: dict[str, tuple[Any, str]] = {
    "bool": (bool, "true or false"),
    "int": (_Whole, "a whole number up to a million"),
    "float": (float, "a number"),
    **dict.fromkeys(("str", "Mode", "Hops", "Literal"), (str, "a word")),
    "None": (None, "null"),
    "ArrayLike": (list[float], "a list of numbers"),
    "Sequence[str]": (list[str], "a list of words"),
    "tuple[float, ...]": (list[float], "a list of numbers"),
    "tuple[int, ...]": (list[_Width], "a list of whole numbers up to 100 000"),
}
_MOST_SHADOWS = 100_000
_MOST_MINUTES = 1e6
_LOG = logging.getLogger("glasshouse")


class TrainedTarget(Strict):
    """A target trained here, on the members that the data names or on a random share."""

    kind: Literal["train"] = "train"
    fraction: Share = 0.5

    def load(self, data: Dataset, folder: Path, seed: int) -> tuple[Any, BoolArray]:
        """No model yet, and the members that will train it."""
        if data.members is None:
            drawn: dict[str, Any] = {"fraction": self.fraction, "seed": seed, "units": data.population.unit}
            return None, random_subsets(len(data.population), models=1, **drawn)[0]
        if "fraction" in self.model_fields_set:
            raise InputError("target.fraction: the data already defines the members. Leave one of them out.")
        return None, data.members


class PythonTarget(Strict):
    """The user's own model: ``module:function``, where the function gives ``(model, members)``."""

    kind: Literal["python"]
    factory: str

    def load(self, data: Dataset, folder: Path, seed: int) -> tuple[Any, BoolArray]:
        """Whatever the function gives; features that its model cannot know, and members that differ, are refused."""
        if data.remade:
            raise InputError(
                f"target.factory: the model cannot know how Glasshouse made features of {data.remade[0]!r} and other "
                f"columns. Give the records as the model takes them: data: {{name: python, factory: …}}, or an .npz."
            )
        made = called(self.factory, folder, "target.factory")
        if not isinstance(made, tuple) or len(made) != 2:
            raise InputError(f"target.factory: {self.factory} must return a pair (model, members).")
        told = as_members(made[1], (len(data.population),), place="target.factory: members", ids=data.population.ids)
        if data.members is not None and not np.array_equal(data.members, told):
            raise InputError(
                f"target.factory: the members of {self.factory} differ from those of the data. Leave the data's out."
            )
        return made


Target = Annotated[TrainedTarget | PythonTarget, Field(discriminator="kind")]


def _is_of(kind: Any, value: Any) -> bool:
    try:
        pydantic.TypeAdapter(kind, config=ConfigDict(strict=True)).validate_python(value)
    except pydantic.ValidationError:
        return False
    return True


def known_attack(choice: str | dict[str, Any]) -> str | dict[str, Any]:
    """An entry whose attack can be made, as it is; pydantic adds its place in the list to an error."""
    parameters = {"name": choice} if isinstance(choice, str) else dict(choice)
    name = str(parameters.pop("name", ""))
    _refuse_infinite(parameters)
    try:
        attack: Any = find_attack(name)
        for field in dataclasses.fields(attack):
            if field.name in parameters:
                _refuse_other_kinds(field, parameters[field.name])
        create(name, **parameters)
    except ValueError:  # ours, and those of the attack itself
        raise
    except Exception as error:  # a parameter of a wrong type can fail in any way
        raise ValueError(first_line(error)) from error
    return choice


def _refuse_infinite(value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a number that an attack can use.")
    for inside in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _refuse_infinite(inside)


def _refuse_other_kinds(field: dataclasses.Field[Any], value: Any) -> None:
    """Refuse what is not of the type that the class says; what a file cannot write can only be given in Python."""
    if field.name == "seed":
        if not _is_of(_Seed, value):
            raise ValueError(f"seed: {shortened(value)} is not a whole number from 0.")
        return
    names = re.split(r"\s*\|\s*", re.sub(r"Literal\[[^]]*\]", "Literal", str(field.type)))
    known = [_KINDS[name] for name in names if name in _KINDS]
    if not known:
        raise ValueError(f"{field.name}: can only be set in Python; leave it out.")
    if not any(_is_of(kind, value) for kind, _ in known):
        wanted = " or ".join(dict.fromkeys(called for _, called in known))
        raise ValueError(f"{field.name}: {shortened(value)} is not {wanted}.")


AttackEntry = Annotated[str | dict[str, Any], AfterValidator(known_attack)]


class ClaimSection(Strict):
    """A stated guarantee to judge."""

    epsilon: Annotated[float, Field(ge=0)]
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0


def grouped_keys() -> dict[str, Any]:
    """The keys of the options that are declared in groups: the type that a file can write, and the default."""
    declared = [one for group in GROUPS.values() for one in dataclasses.fields(group)]
    return {one.name: (one.metadata["file"], one.default) for one in declared if one.metadata["file"]}


if TYPE_CHECKING:
    _Options = Strict
else:
    _Options = pydantic.create_model("_Options", __base__=Strict, __module__=__name__, **grouped_keys())


class AuditFile(_Options):
    """An audit file: ``graph`` for a graph neural network, or ``data``, ``trainer`` and ``target`` for anything else.

    Without any of them, the embedded default is audited: a synthetic citation graph.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)  # editors show them beside the keys

    title: str | None = None
    author: str = ""
    """Who is responsible for the audit; shown in the report."""
    graph: GraphSection | None = None
    """A graph and its network, instead of data, trainer and target."""
    data: Data | None = None
    """Which records: by name, from a file, or from a function of your own."""
    trainer: TrainerSection = Field(default={"kind": "mlp"}, validate_default=True)
    """How the target and the shadow models are trained."""
    target: Target = TrainedTarget()
    """The audited model: trained here, or given by a function of your own."""
    attacks: Annotated[list[AttackEntry], Field(min_length=1), BeforeValidator(one_or_more)] | None = None
    shadows: Annotated[int, Field(le=_MOST_SHADOWS)] = 8
    mode: Literal["online", "offline"] = "online"
    seed: Annotated[int, Field(ge=0)] = 0
    pool: str | None = None
    plan: str | None = None
    """Folder of glasshouse plan: its members or canaries are audited, and ε needs no assumption about their draw."""
    answers: Literal["probabilities", "labels"] = "probabilities"
    """What a model tells about a record; with ``labels``, the attacks see no probabilities."""
    minutes: Annotated[float, Field(gt=0, le=_MOST_MINUTES)] | None = None
    """Time budget of the audit of a graph; work is cut to fit."""
    advise: Annotated[float, Field(gt=0, le=_MOST_MINUTES)] | None = None
    """Minutes for trying defences after the audit; the report quotes the one that is advised."""

    @field_validator("shadows")
    @classmethod
    def _in_pairs(cls, shadows: int) -> int:
        if shadows < 0 or (shadows % 2 and shadows != 1):
            near = max(2, shadows - shadows % 2)
            raise ValueError(
                f"{shadows} is {'odd' if shadows % 2 else 'too few'}; models are trained in complementary pairs. "
                f"Use {near} or {near + 2}."
            )
        return shadows

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.graph is not None and (both := sorted(self.model_fields_set & {"data", "trainer", "target"})):
            raise ValueError(f"{both[0]}: cannot be used together with graph. Leave one of them out.")
        if self.is_graph and self.shadows < 2:
            raise ValueError("shadows: an audit without shadow models is for records; a graph needs 2 or more.")
        pairs = self.graph is not None and self.graph.pairs is not None
        kind = "edges" if pairs else "a graph" if self.is_graph else "records"
        for one in (field for group in GROUPS.values() for field in dataclasses.fields(group)):
            if one.metadata["file"] and one.name in self.model_fields_set and kind not in one.metadata["of"]:
                raise ValueError(f"{one.name}: an audit of {kind} does not use it; leave it out.")
        given = self.model_fields_set | (self.graph.model_fields_set if self.graph else set())
        if pairs and (unused := given & {"advise", "attacker", "minutes", "nodes", "pool", "setting"}):
            raise ValueError(f"{min(unused)}: an audit of edges does not use it; leave it out.")
        if self.minutes is not None and not self.is_graph:
            raise ValueError("minutes: only the audit of a graph has a time budget; leave it out for records.")
        if self.is_graph and self.plan is not None:
            raise ValueError("plan: is for records; leave it out for a graph.")
        if self.is_graph and self.answers == "labels":
            raise ValueError("answers: labels alone are for records; leave it out for a graph.")
        return self

    @property
    def is_graph(self) -> bool:
        """Whether a graph is audited: if the file names one, or nothing else."""
        return self.graph is not None or not self.model_fields_set & {"data", "trainer", "target"}

    def group(self, name: str) -> Any:
        """A group of options, such as ``"evaluation"``, as the file sets them."""
        group = GROUPS[name]
        given = {one.name: getattr(self, one.name) for one in dataclasses.fields(group) if one.metadata["file"]}
        return group(
            **{key: value.model_dump() if isinstance(value, Strict) else value for key, value in given.items()}
        )

    @property
    def factories(self) -> dict[str, str]:
        """The user's own functions that the file names, ``module:function``, by the section that names them."""
        sections = {} if self.is_graph else {"data": self.data, "trainer": self.trainer, "target": self.target}
        named = {place: getattr(section, "factory", None) for place, section in sections.items()}
        return {place: factory for place, factory in named.items() if factory is not None}


def read_audit_file(path: Path | str) -> AuditFile:
    """Read and check an audit file; all faults are reported at once."""
    return read_yaml(Path(path), AuditFile)


def with_options(config: AuditFile, **given: Any) -> AuditFile:
    """The same audit with options of the command line in place of the file's, checked alike; None changes nothing."""
    given = {name: value for name, value in given.items() if value is not None}
    nodes = given.pop("nodes", None)
    faults = []
    if nodes is not None and not config.is_graph:
        faults.append("--nodes: a sample of nodes is for graphs, and this audit is of records. Leave it out.")
    try:
        config = AuditFile.model_validate({name: getattr(config, name) for name in config.model_fields_set} | given)
    except pydantic.ValidationError as error:
        faults += ["--" + re.sub(r"^attacks\[\d+\]", "attack", fault) for fault in faults_of(error, AuditFile)]
    for name in given.get("attacks", ()):
        if not config.is_graph and name in attack_names() and find_attack(name).kind == "graph":
            faults.append(f'--attack: "{name}" needs a graph, and this audit is of records. Leave it out.')
    raise_faults(faults)
    if nodes is None:
        return config
    if config.graph is not None and config.graph.pairs is not None:
        raise InputError("--nodes: the file asks for an audit of edges; say how many under graph.pairs.")
    return config.model_copy(update={"graph": (config.graph or GraphSection()).model_copy(update={"nodes": nodes})})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prepared:
    """What a file asks for, read and checked: the arguments of `glasshouse.audit` or `glasshouse.graph.audit`."""

    data: Any  # a population or a graph
    arguments: dict[str, Any]  # the others
    said: tuple[str, ...] = ()  # what was noticed while the data were read


def prepared(
    config: AuditFile, *, folder: Path, compute: Compute | None = None, trust_code: bool = False, bounded: bool = False
) -> Prepared:
    """Read the data, the target and the trainer that a file names, from its ``folder``; ``compute`` is where work runs.

    Without ``trust_code``, a file that imports functions or reads pickles is refused. With ``bounded``, this process
    has a hard limit on memory while files are read; code that is trusted may take what it needs.
    """
    if not trust_code:
        check_code(config.factories, graph=config.graph.name if config.graph else None, folder=folder)
    common: dict[str, Any] = {
        "shadows": config.shadows,
        "mode": config.mode,
        "evaluation": config.group("evaluation"),
        "seed": config.seed,
        "pool": None if config.pool is None else folder / config.pool,
        "compute": compute,
        "advise": config.advise,
    }
    common |= {name: value for name in ("title", "attacks") if (value := getattr(config, name)) is not None}
    reading: AbstractContextManager[None] = process_limit() if bounded and not trust_code else nullcontext()
    if config.is_graph:
        section = config.graph or GraphSection()
        with reading:
            arguments = section.arguments(folder=folder, seed=config.seed, attacker=config.group("attacker"))
            check_shadows(config.shadows, int(arguments["data"].num_nodes))
        if section.pairs is not None:
            if not isinstance(compute, ThisProcess | None):
                raise InputError("--workers: an audit of edges runs in one process; leave it out.")
            common = {name: value for name, value in common.items() if name not in ("pool", "compute", "advise")}
            return Prepared(data=arguments.pop("data"), arguments=arguments | common)
        return Prepared(data=arguments.pop("data"), arguments={**arguments, **common, "minutes": config.minutes})
    with reading:
        data = (config.data or DigitsData(name="digits")).load(folder, config.seed)
        check_shadows(config.shadows, len(data.population))
        plan = None if config.plan is None else read_plan(folder / config.plan, data.population)
        if plan is not None:
            data = dataclasses.replace(data, members=plan.members)
        model, members = config.target.load(data, folder, config.seed)
        trainer: Any = config.trainer.build(data.population, folder)
    advice = config.trainer.advice(data.population)
    for line in advice:
        _LOG.warning("%s", visible(line))
    query = LabelOnly(seed=config.seed) if config.answers == "labels" else None
    common["attacker"] = dataclasses.replace(config.group("attacker"), query=query)
    common["evaluation"] = dataclasses.replace(common["evaluation"], groups=data.groups or None)
    population = data.population
    if plan is not None:
        trainer, design = plan.trainer(trainer, population), plan.design_of(common["evaluation"].design)
        population, members = plan.audited(population)
        groups = common["evaluation"].groups if plan.kind == "members" else None
        common["evaluation"] = dataclasses.replace(common["evaluation"], design=design, groups=groups)
    common |= {"model": model, "members": members, "trainer": trainer, "about": data.about}
    return Prepared(data=population, arguments=common, said=(*data.notes, *data.warnings, *advice))


def run_audit_file(config: AuditFile, *, folder: Path, progress: bool | None = None, **reading: Any) -> AuditResult:
    """Run the audit that a file describes; ``reading`` are the other options of `prepared`."""
    found = prepared(config, folder=folder, **reading)
    result = audit_of(found.data, edges="edges" in found.arguments)(found.data, **found.arguments, progress=progress)
    context = dataclasses.replace(result.context, author=config.author, notes=(*found.said, *result.context.notes))
    return dataclasses.replace(result, context=context)


def advise_audit_file(
    config: AuditFile,
    *,
    folder: Path,
    minutes: float | None,
    pool: Path | None,
    most_accuracy: float,
    progress: bool | None = None,
    **reading: Any,
) -> Advice:
    """Try the defences that fit the trainer of a file; options as of `glasshouse.advise` and `prepared`."""
    found = prepared(config, folder=folder, **reading)
    if "edges" in found.arguments:
        raise InputError("graph.pairs: defences are tried for nodes alone; leave pairs out to try them.")
    given = found.arguments | {"minutes": minutes, "pool": pool, "most_accuracy": most_accuracy, "progress": progress}
    given.pop("advise")  # minutes after an audit
    return advise(found.data, **given)
