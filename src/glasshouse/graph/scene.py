"""A scene: a graph, the model under audit, its shadow models and who trained them; what a graph attack looks at."""

from __future__ import annotations

import abc
import hashlib
import math
import tempfile
from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self, TypeVar, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.core.arrays import F32, BoolArray, FloatArray, IntArray, TextArray
from glasshouse.core.errors import InputError, naming
from glasshouse.core.outputs import losses_from_logits
from glasshouse.data import as_ids, as_members
from glasshouse.evidence import Evidence, Kind
from glasshouse.evidence.simulation import SimulatedTarget, check_simulation, reference_rows
from glasshouse.graph.data.checking import CheckedGraph, checked_graph, labelled_nodes
from glasshouse.graph.models.networks import Model, model_device
from glasshouse.graph.models.profile import AnyModel, Profiled, node_logits, profile_models, raw_models, refuse_caches
from glasshouse.graph.models.tensor_cache import Memory
from glasshouse.graph.rule.question import Hops, Question, ask
from glasshouse.graph.rule.toggling import answer_question, settled_engine
from glasshouse.graph.training.setting import Setting, check_setting

T = TypeVar("T")
_REMEMBERED = 4  # sets of masks; a set of eight on 20 000 nodes takes some ten megabytes
_IN_MEMORY = 2**30  # bytes of toggled answers, and of logits of each query; see `Scene`
_Answers = tuple[FloatArray, F32]  # of models: losses [models, n]; logits [models, n, C], in a file if they are large


@dataclass(eq=False)
class ScenePool:
    """The models of a scene, profiled and asked once: its simulated scenes have the same models in other places."""

    models: tuple[AnyModel, ...]
    kept: dict[Hashable, Any] = field(default_factory=dict)  # what they answered, by query
    level: int = 0  # 1 if it is known how the models are called, 2 if it was measured how far they see
    memory: Memory = field(default_factory=Memory)

    @cached_property
    def device(self) -> torch.device | None:
        """Where the models are; None if all are black boxes."""
        return model_device(raw_models(self.models))

    def profiled(self, data: Data, *, parts: bool) -> list[Profiled]:
        """The models with their profiles; all get them together, so that a worker that asks only some agrees."""
        if self.level < 1 + parts:
            self.models, self.level = tuple(profile_models(self.models, data, parts=parts)), 1 + parts
        return cast("list[Profiled]", list(self.models))

    def __reduce__(self) -> tuple[Any, ...]:
        """What is known about tensors of one process is not known about their copies in another."""
        return ScenePool, (self.models, self.kept, self.level)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class PooledScene(abc.ABC):
    """What scenes of nodes and of pairs share: models in places of a pool, and each of them as a simulated target."""

    data: CheckedGraph
    target: Model
    shadows: tuple[Model, ...]
    shadow_members: BoolArray
    _pool: ScenePool
    _places: tuple[int, slice | IntArray]  # where the target and the shadow models are in the pool

    def _hold(self, target: AnyModel, shadows: Sequence[AnyModel], members: ArrayLike, count: int, **more: Any) -> None:
        """Fill the fields; ``members`` are [K, count]."""
        vars(self).update(
            target=raw_models([target])[0],
            shadows=tuple(raw_models(shadows)),
            shadow_members=as_members(members, (len(shadows), count), place="shadow_members"),
            _pool=ScenePool((target, *shadows)),
            _places=(0, slice(1, None)),
            **more,
        )

    def __getstate__(self) -> dict[str, Any]:
        """What a worker is sent: what the models answered, but nothing that is quick to make again."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def labelled(self) -> slice | IntArray:
        """Where the entries of ``shadow_members`` are that a model can be asked about: all, or positions, ascending."""
        return slice(None)

    @abc.abstractmethod
    def audited(self, values: ArrayLike) -> NDArray[Any]:
        """The entries of what is audited, [N]."""

    @property
    def models(self) -> list[Model]:
        """The target first, then the shadow models."""
        return [self.target, *self.shadows]

    def profiled(self, *, parts: bool = True) -> list[Profiled]:
        """The models with their profiles, the target first, each found once; without ``parts`` how they are called."""
        return self._own(self._pool.profiled(self.data, parts=parts))

    def simulated(self) -> Iterator[SimulatedTarget[Self]]:
        """Each shadow model in turn as the target, judged by the others without its complement; and who trained it."""
        check_simulation(len(self.shadows))
        for k in range(len(self.shadows)):
            yield self.simulated_target(k)

    def simulated_target(self, k: int) -> SimulatedTarget[Self]:
        """Shadow model k as the target; see `simulated`."""
        return SimulatedTarget(self._among(self.references_of(k), model=k), self.audited(self.shadow_members[k]))

    def in_place_of(self, k: int) -> Self:
        """The same target, compared only with the references of simulated target k."""
        return self._among(self.references_of(k))

    def references_of(self, k: int) -> IntArray:
        """[R] the shadow models that simulated target k is compared with."""
        rows = reference_rows(self.shadow_members[:, self.labelled], k)
        if rows.shape[1] != 1:
            raise InputError("shadow_members: on graphs, draw shadow models in complementary pairs or at random.")
        return rows[:, 0]

    def _own(self, pool: Sequence[T]) -> list[T]:
        """The target's and the shadow models' entries of a list with one per model of the pool."""
        target, shadows = self._places
        others = pool[shadows] if isinstance(shadows, slice) else [pool[k] for k in shadows]
        return [pool[target], *others]

    def _among(self, others: IntArray, *, model: int | None = None) -> Self:
        """The target, or shadow model k in its place, with some of the shadow models as references.

        The graph was checked, and answers that are known are not asked for again.
        """
        own, shadows = self._places
        positions = np.arange(len(self._pool.models))[shadows]
        return self._but(
            target=self.target if model is None else self.shadows[model],
            shadows=tuple(self.shadows[j] for j in others),
            shadow_members=self.shadow_members[others],
            _places=(own if model is None else positions[model], positions[others]),
        )

    def _but(self, **changed: Any) -> Self:
        """The same scene with other fields; it is not checked again."""
        scene = object.__new__(type(self))
        vars(scene).update(self.__getstate__() | changed)
        return scene


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Scene(PooledScene):
    """One target on one graph, as an attacker sees it. It does not hold who trained the target.

    It keeps what models answered, so that attacks do not ask again: the last toggled answers up to 1 GiB, and the
    logits of two queries, which lie in a temporary file if those of one query are larger than 1 GiB.

    Args:
        data: the graph the attacker knows: ``x`` [n, features], ``edge_index`` [2, edges], ``y`` [n], and values of
            edges if it has any.
        target: the model under audit, ``(x, edge_index) -> logits``.
        shadows: the K shadow models.
        shadow_members: [K, n] which nodes trained which shadow model.
        nodes: ids of the audited nodes; all that have a label by default. The others are context: no model has a loss
            on them, and they are members of every sampled training set if all shadow models were trained with them.
        ids: [n] names of the nodes; their numbers by default. Those of the audited nodes are the scene's ``ids``.
        setting: ``"inductive"``, or ``"transductive"`` if models were trained on the whole graph with the members'
            labels; models are then asked only about the whole graph.

    Example:
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> scene = Scene(data, lambda x, edges: x - 1, [lambda x, edges: x - 1], [[1, 0]])
        >>> scene.zero_hop.target_loss.round(3)
        array([0.313, 0.313])
    """

    nodes: IntArray
    names: TextArray
    setting: Setting

    def __init__(
        self,
        data: Data,
        target: AnyModel,
        shadows: Sequence[AnyModel],
        shadow_members: ArrayLike,
        *,
        nodes: ArrayLike | None = None,
        ids: Sequence[Any] | NDArray[Any] | None = None,
        setting: Setting = "inductive",
    ) -> None:
        graph = checked_graph(data)
        check_setting(setting)
        count = int(graph.num_nodes)
        labelled = np.arange(count)[labelled_nodes(graph)]
        chosen = labelled if nodes is None else np.asarray(nodes)
        if chosen.dtype == np.bool_:
            chosen = np.flatnonzero(as_members(chosen, (count,), place="nodes"))
        if chosen.dtype.kind not in "iu" or (len(chosen) and not (chosen.min() >= 0 and chosen.max() < count)):
            raise InputError(f"nodes: give ids of nodes, whole numbers from 0 to {count - 1}.")
        if len(np.unique(chosen)) != len(chosen) or not len(chosen):
            raise InputError("nodes: none, or one of them twice; give each audited node once.")
        if lost := len(np.setdiff1d(chosen, labelled)):
            raise InputError(f"nodes: {lost} of {len(chosen)} have no label and cannot be audited; leave them out.")
        nodes, names = chosen.astype(np.int64), as_ids(ids, count, place="ids")
        self._hold(target, shadows, shadow_members, count, data=graph, nodes=nodes, names=names, setting=setting)

    def __repr__(self) -> str:
        return f"Scene({self.data.num_nodes} nodes, {len(self.nodes)} audited, {len(self.shadows)} shadow models)"

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noticed about the models, each note once."""
        known = [one.profile.notes for one in self._own(self._pool.models) if isinstance(one, Profiled)]
        return tuple(dict.fromkeys(note for notes in known for note in notes))

    @property
    def ids(self) -> TextArray:
        """[N] names of the audited nodes."""
        return self.names[self.nodes]

    @property
    def offers(self) -> tuple[Kind, ...]:
        """Which attacks can look at it; those on graphs toggle nodes, which is no signal for a transductive model."""
        return ("records", "graph") if self.setting == "inductive" else ("records",)

    @cached_property
    def labelled(self) -> slice | IntArray:
        """Where the nodes with a label are: all of them, or positions [L], ascending."""
        return labelled_nodes(self.data)

    @cached_property
    def among_labelled(self) -> IntArray:
        """[N] where the audited nodes are among those with a label."""
        return self.nodes if isinstance(self.labelled, slice) else np.searchsorted(self.labelled, self.nodes)

    @property
    def outside(self) -> BoolArray:
        """[K, n] which shadow models may judge a node offline: those not trained on it; all for context."""
        outside = ~self.shadow_members
        if not isinstance(self.labelled, slice):
            outside[:, self.data.y.cpu().numpy() < 0] = True
        return outside

    def audited(self, values: ArrayLike) -> NDArray[Any]:
        """The entries of the audited nodes, [N], from an array with one entry per node of the graph."""
        return np.asarray(values)[self.nodes]

    @cached_property
    def evidence(self) -> Evidence:
        """Evidence about the audited nodes for attacks on records: zero-hop queries, or whole-graph if transductive."""
        return self.of_nodes(self.zero_hop if self.setting == "inductive" else self.whole_graph)

    @cached_property
    def zero_hop(self) -> Evidence:
        """Evidence about every node from queries without edges: the i.i.d. attacks look at this."""
        return self._evidence("zero hop", torch.arange(0))

    @cached_property
    def whole_graph(self) -> Evidence:
        """Evidence about every node from queries about the whole graph that the attacker knows."""
        return self._evidence("whole graph", None)

    def of_nodes(self, evidence: Evidence, nodes: slice | IntArray | None = None) -> Evidence:
        """Evidence about some nodes only, by default the audited ones."""
        at = self.nodes if nodes is None else nodes
        if isinstance(at, slice):  # all of them
            return evidence
        # not by `of_records`, which leaves another order in memory: the last bits of sums depend on it
        part: dict[str, Any] = {
            name: value[:, at] if name.startswith("shadow") else value[at]
            for name, value in vars(evidence).items()
            if isinstance(value, np.ndarray)
        }
        return Evidence(**part)

    def toggled(self, masks: BoolArray, *, engine: str = "auto", hops: Hops = "model") -> FloatArray:
        """S of eq. (6) under sampled masks [M, n], for target and shadow models, [1 + K, M, nodes].

        The last answers are kept: attacks in both modes, or with the same sampler, ask the same.
        """
        key = (hashlib.sha256(np.packbits(masks).tobytes()).hexdigest(), len(masks), engine, hops)
        if key not in self._answers:
            with self.keeping():
                question = self.question(masks, hops=hops)
                chosen = self._engine(question, engine)
                found = answer_question(self.profiled(), question, engine=chosen)
            self._answers[key] = np.asarray(found.signal.cpu().numpy(), dtype=np.float64)
            while len(self._answers) > 1 and (
                len(self._answers) > _REMEMBERED or sum(one.nbytes for one in self._answers.values()) > _IN_MEMORY
            ):
                del self._answers[next(iter(self._answers))]
        return self._answers[key]

    def engine_for(self, masks: BoolArray, *, engine: str = "auto", hops: Hops = "model") -> str:
        """The engine for a question about masks [M, n], chosen for the target and all simulated targets together."""
        with self.keeping():
            return self._engine(self.question(masks, hops=hops), engine)

    def _engine(self, question: Question, engine: str) -> str:
        if engine != "auto" or not (count := len(question.masks)):
            return engine
        return settled_engine(self.profiled(), question, work=count * len(self._pool.models) ** 2, least=count)

    def question(self, masks: BoolArray, *, hops: Hops = "model") -> Question:
        """The question about masks [M, n] and the audited nodes, where the models are."""
        given = torch.from_numpy(masks), torch.from_numpy(self.nodes)
        return ask(self.data, *given, hops=hops, device=self._pool.device)

    def keeping(self) -> AbstractContextManager[None]:
        """Inside this block the graph is sent to a device once, for all questions about the scene's models."""
        return self._pool.memory.open()

    @cached_property
    def _answers(self) -> dict[tuple[object, ...], FloatArray]:
        return {}

    def of_records(self, rows: IntArray) -> Scene:
        """The same scene of which only some of the audited nodes, by their places among them, are audited."""
        return self._but(nodes=self.nodes[rows])

    def _evidence(self, query: str, edges: Tensor | None) -> Evidence:
        """Losses and logits of all models on all nodes, asked with the edges at these positions, or with all."""
        labels = self.data.y.cpu().numpy().astype(np.int64).clip(min=0)  # without a label: an answer that nobody uses
        if query not in self._pool.kept:
            with self.keeping():
                self._pool.kept[query] = self._asked(edges, labels)
        losses, logits = self._pool.kept[query]
        target, shadows = self._places
        return Evidence(
            target_loss=losses[target],
            shadow_loss=losses[shadows],
            shadow_members=self.shadow_members,
            ids=self.names,
            labels=labels,
            target_logits=logits[target],
            shadow_logits=logits[shadows],
        )

    def _asked(self, edges: Tensor | None, labels: IntArray) -> _Answers:
        """What all models of the pool answer."""
        if self.setting == "inductive":
            refuse_caches(raw_models(self._pool.models))
        models = self._pool.profiled(self.data, parts=False)  # all nodes are asked about at once
        losses, logits = np.empty((len(models), len(labels))), None
        for row, model in enumerate(models):
            with naming(f"shadow model {row - 1}" if row else "target"):
                answer = next(node_logits([model], self.data, edges, ids=self.names))
            losses[row] = losses_from_logits(answer, labels)
            logits = _room((len(models), *answer.shape)) if logits is None else logits
            if answer.shape != logits.shape[1:]:
                raise InputError(
                    f"model: it answers with {logits.shape[2]} logits per node, and shadow model {row - 1} with "
                    f"{answer.shape[1]}. Both must give one per class, in the same order."
                )
            logits[row] = answer
        assert logits is not None  # noqa: S101 (for the type checker: a scene has a target)
        return losses, logits


def _room(shape: tuple[int, ...]) -> F32:
    """An array to be filled: in memory, or in a temporary file that goes with it if it is large."""
    if 4 * math.prod(shape) <= _IN_MEMORY:
        return np.empty(shape, dtype=np.float32)
    with tempfile.TemporaryFile() as file:  # the map keeps the file open
        return np.memmap(file, dtype=np.float32, mode="w+", shape=shape)
