"""The one call for graphs: from a graph and a way to train a GNN to a verdict."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from torch import nn
from torch_geometric.data import Data, HeteroData

from glasshouse.attacks import Attack
from glasshouse.attacks.attack import AttackChoice, chosen_attacks
from glasshouse.auditing.defences import Defence, register_defences, with_dropout
from glasshouse.auditing.options import Attacker, Evaluation, check_options, documented
from glasshouse.auditing.result import AuditResult
from glasshouse.auditing.steps import (
    audit_view,
    audited_draw,
    check_attacks,
    checked_members,
    checked_rates,
    library_versions,
    settings_of,
    train_shadows,
)
from glasshouse.auditing.trials import audit_and_advise
from glasshouse.compute import Compute
from glasshouse.core.arrays import BoolArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.core.outputs import column_order_note
from glasshouse.core.progress import track
from glasshouse.data import Units, as_ids
from glasshouse.data.units import as_units
from glasshouse.evaluation import Known
from glasshouse.evaluation.checks.members import shared_nodes
from glasshouse.evaluation.groups import as_groups
from glasshouse.evidence import Mode
from glasshouse.graph.attacks.g_base import answers_of, with_truth
from glasshouse.graph.budget import check_minutes, within_minutes
from glasshouse.graph.data.audited import chosen_nodes
from glasshouse.graph.data.checking import checked_graph
from glasshouse.graph.data.graph_list import check_one_graph
from glasshouse.graph.data.population import GraphPopulation
from glasshouse.graph.models.networks import GNN, Model
from glasshouse.graph.models.profile import Profiled, node_logits, profile_models
from glasshouse.graph.programs.trace import traced
from glasshouse.graph.rule.toggling import check_engine
from glasshouse.graph.scene import Scene
from glasshouse.graph.training.plain import plain_arguments
from glasshouse.graph.training.setting import (
    Setting,
    check_setting,
    fit_ratios,
    looks_transductive,
    node_accuracy,
    node_choices,
)
from glasshouse.graph.training.trainer import GNNTrainer
from glasshouse.pool import ShadowPool
from glasshouse.query.losses import Loss
from glasshouse.report import Context, Surroundings
from glasshouse.training.trainer import Trainer, check_trainer

DEFAULT_ATTACKS = ("base", "lira", "rmia", "classifier", "g-classifier", "g-base", "g-stacked")

_COMPARED = 4  # shadow models of ours whose fit the target's is compared with

_NO_TOGGLES = (
    "left out: it compares a node with and without its neighbours, and a transductive model was trained on the whole "
    "graph, whoever its members are"
)


@documented
def audit(
    data: Data | HeteroData,
    *,
    model: Model | None = None,
    members: ArrayLike | None = None,
    trainer: Trainer | None = None,
    attacks: Sequence[AttackChoice] = DEFAULT_ATTACKS,
    shadows: int = 8,
    loss: Loss | None = None,
    mode: Mode = "online",
    attacker: Attacker = Attacker(),
    evaluation: Evaluation = Evaluation(),
    pool: Path | str | None = None,
    compute: Compute | None = None,
    seed: int = 0,
    title: str = "Membership audit of a graph neural network",
    about: str = "",
    progress: bool | None = None,
    advise: float | None = None,
    nodes: int | ArrayLike | None = None,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    setting: Setting = "inductive",
    minutes: float | None = None,
    unit: ArrayLike | Units | None = None,
) -> AuditResult:
    """Train shadow GNNs, attack the target, and measure which of its training nodes can be recognised.

    `glasshouse.audit` for graphs: common options have the same name, order and default; the last five are for graphs.

    Args:
        data: the graph: ``x`` [n, features], ``edge_index`` [2, edges], ``y`` [n], members and non-members; -1 (or
            NaN) for a node without a label, which is not audited but stays in the graph. Perhaps with ``edge_weight``
            [edges], ``edge_attr`` [edges] or [edges, d] and ``edge_type`` [edges], for models with parameters for them.
            Or a ``HeteroData`` of which one kind of nodes has labels: members, nodes and ids are then of this kind, and
            a model is called with dicts.
        model: the target, ``(x, edge_index) -> logits`` or ``data -> logits``; a black box is enough. None trains one
            on ``members``. A given model needs its ``members`` and the ``trainer`` that trained it.
        trainer: ``(data, members, seed) -> model``, as the target was trained; by default `GNNTrainer`, if no model is
            given.
        attacks: attacks on records by name (they look at zero-hop queries), attacks on graphs such as ``"g-base"``,
            objects, or mappings such as ``{"name": "g-base", "sampler": "gibbs"}``; ``"best"`` picks one of either kind
            by simulated targets and reports why. By default the paper's attacks and the strongest one, ``"g-stacked"``;
            what cannot use the pool is then left out, and the report says why.
        loss: ``(model, batch) -> losses`` [n], or [n, T] of the parts of each node (labels, outputs), of outcomes ``y``
            [n] or [n, L]; `MultiLabelLoss` and `GaussianLoss` are two that are ready. The trainer is then a function.
        about: a sentence about the data, shown beside the figures; by default ``data.about``, if it is set.
        nodes: which nodes are audited; all by default. A number draws that many at random, spread over degrees and
            classes: the work of attacks on graphs is then in proportion to it, and figures are estimates for the whole
            graph, with intervals that know it. Or the nodes themselves, by position or as ids.
        ids: [n] names of the nodes; by default ``data.ids``, or their numbers.
        setting: how training saw the graph: ``"inductive"``, only the members and the edges between them; or
            ``"transductive"``, the whole graph with the members' labels, as in the usual Planetoid script. All queries
            are then about the whole graph, and attacks that toggle nodes are left out.
        minutes: that the audit should take, training and all. Once the shadow models are trained, a few questions are
            measured, and nodes, training sets and rounds are planned to fit; the report says what was given up.
        unit: [n] whose node each one is, such as the accounts of a person; all nodes of one are inside or outside
            together, and the result is by unit. Without it each node is a unit of its own.

    Example:
        >>> from glasshouse.graph import citation_graph
        >>> data = citation_graph(nodes=120, classes=3)
        >>> trainer = GNNTrainer(hidden=8, epochs=5, device="cpu")
        >>> result = audit(data, trainer=trainer, attacks=["base"], shadows=2)
        >>> result.table()["attack"]
        array(['base'], dtype='<U4')
    """
    if isinstance(data, HeteroData) or loss is not None:
        same = dict(locals())
        changed = {name: same[name] for name in ("loss", "model", "members", "trainer", "attacker")}
        return audit(**same | plain_arguments(data, **changed))
    if advise is not None:
        same = {name: value for name, value in locals().items() if name not in ("data", "advise")}
        return audit_and_advise(audit, data, budget=advise, usual=GNNTrainer(setting=setting), **same)
    began = time.perf_counter()
    check_one_graph(data)
    graph = checked_graph(data)
    check_minutes(minutes)
    check_setting(setting)
    check_options(attacker, evaluation, "a graph")
    count = int(data.num_nodes)
    names = getattr(data, "ids", None) if ids is None else ids
    known_ids = as_ids(names, count, place="ids")
    units = as_units(unit, count)
    if minutes is not None or (nodes is not None and not np.ndim(nodes)):
        if units is not None:
            raise InputError("unit: a sample of nodes would split units; audit all nodes, or name whole units' nodes.")
        if evaluation.design is not None:
            raise InputError("design: figures of a sample of nodes follow that draw; audit all nodes, or name them.")
    truth = checked_members(model, members, count, seed=seed, ids=known_ids, units=units)
    context = (graph.y < 0).cpu().numpy()
    if members is None:
        truth |= context
    chosen = chosen_nodes(nodes, graph, ids=known_ids, members=truth, seed=seed)
    owner = _owner(data, model, trainer, setting)
    theirs = owner if attacker.trainer is None else attacker.trainer
    check_trainer(theirs, place="attacker.trainer", graph=True)
    own, ours = (isinstance(one, GNNTrainer) for one in (owner, theirs))  # they take a checked graph
    if ours and data.x.dtype != torch.float32:
        raise InputError(f"data.x: is {data.x.dtype}, and GNNTrainer trains in torch.float32. Pass data.x.float().")
    if shadows < 2:
        raise InputError(f"shadows: {shadows} is too few; attacks on a graph need shadow models. Use 8.")
    seen = graph if attacker.graph is None else checked_graph(attacker.graph)
    given = []
    if model is not None:  # one that cannot answer is refused before shadow models are trained
        given = profile_models([model], seen, parts=False)
        next(node_logits(given, seen))
    # a first scene, whose empty model is never asked, checks nodes and ids before the long work
    common: dict[str, Any] = {"nodes": chosen.nodes, "ids": names, "setting": setting}
    empty = Scene(seen, GNN([]), [], np.empty((0, count), dtype=np.bool_), **common)
    counted = truth[empty.nodes]
    counted = counted if units is None else units.at(empty.nodes).members(counted, place="members")
    fprs = checked_rates(evaluation.fprs, counted, of="audited nodes")
    columns = as_groups(evaluation.groups, count)
    made = chosen_attacks(
        attacks, offers=("records", "graph"), nodes=empty.nodes, mode=mode, prior=attacker.prior, seed=seed, fprs=fprs
    )
    made = {name: with_truth(attack, truth) for name, attack in made.items()}
    made, left_out = _fitting(made, empty)
    plan = ShadowPool.plan(
        seen if ours else (data if attacker.graph is None else attacker.graph),
        theirs,
        shadows=shadows,
        fraction=attacker.fraction,
        seed=seed,
        folder=pool,
        compute=compute,
        units=units,
    )
    if context.any():  # as in the target's training graph; who is a member is asked of labelled nodes alone
        plan = dataclasses.replace(plan, members=np.where(context, truth, plan.members))
    named, budget = attacks is not DEFAULT_ATTACKS, ""
    classless = "" if int(graph.y.max()) else "a loss of your own"  # a graph of classes has two or more
    made, refused = check_attacks(made, plan.members[:, empty.nodes], named=named, classless=classless)
    target, seconds = train_shadows(
        plan, owner, population=graph if own else data, model=model, members=truth, seed=seed, progress=progress
    )
    started = time.perf_counter()
    models = list(track(plan, total=len(plan), label="Shadow models", unit="models", show=progress))
    spent = seconds + time.perf_counter() - started
    scene = Scene(seen, given[0] if given else target, models, plan.members, **common)
    if minutes is not None:
        whole = nodes is None or np.ndim(nodes) == 0  # else the user named them, and each of them is wanted
        least = _least(fprs, truth) if whole and np.ndim(attacker.prior) == 0 else len(scene.nodes)
        fit = within_minutes(scene, made, minutes=minutes, began=began, least=least, seed=seed)
        made, left_out, budget = fit.attacks, {**left_out, **fit.left_out}, fit.note
        if fit.nodes < len(scene.nodes):
            chosen = chosen_nodes(fit.nodes, graph, ids=known_ids, members=truth, seed=seed)
            profiled = scene.profiled()
            scene = Scene(seen, profiled[0], profiled[1:], plan.members, **{**common, "nodes": chosen.nodes})
            fprs = checked_rates(fprs, truth[scene.nodes])
    _ = scene.evidence  # before anything is toggled: answers that are not logits are reported here
    asked = scene.profiled(parts=False)
    labels, edges, population = graph.y.cpu().numpy(), data.edge_index.cpu().numpy(), GraphPopulation(data)
    context = Context(
        title=title,
        about=" ".join([about or str(getattr(data, "about", "") or ""), *_oddities(data)]).strip(),
        shadows=shadows,
        mode=mode,
        seed=seed,
        train_accuracy=None if classless else node_accuracy(asked[0], graph, truth, setting=setting),
        test_accuracy=None if classless else node_accuracy(asked[0], graph, ~truth, setting=setting),
        fingerprint=population.fingerprint(),
        shadow_seconds=spent,
        settings={
            **settings_of(owner, attacker, evaluation),
            "setting": setting,
            "attacker's graph": "the owner's" if attacker.graph is None else GraphPopulation(seen).fingerprint(),
            "engine": _engine(made, scene, seed=seed),
        },
        versions=library_versions("torch-geometric", "numba"),
        warnings=_doubts(scene, theirs, graph, truth),
        notes=(
            *filter(None, [budget, chosen.note]),
            *scene.notes,
            *(() if classless else _column_order(asked[0], graph, truth, setting)),
            *shared_nodes(population.digests(scene.nodes), scene.audited(truth)),
        ),
    )
    draw = audited_draw(
        evaluation.design,
        members=truth,
        units=units,
        columns={**columns, "label": labels, "component": components(edges, count), "edges": edges, "members": truth},
        at=scene.nodes,
    )
    groups = {name: scene.audited(values) for name, values in columns.items()}
    return audit_view(
        scene,
        made,
        members=scene.audited(truth),
        labels=scene.audited(labels),
        units=None if units is None else units.at(scene.nodes),
        draw=draw,
        known=Known(x=data.x, labels=labels, pairs=edges, audited=scene.nodes),
        evaluation=dataclasses.replace(evaluation, fprs=fprs, groups=groups),
        context=context,
        compute=compute,
        progress=progress,
        prior=attacker.prior,
        left_out={**left_out, **refused},
        surroundings=Surroundings(edges, members=truth, labels=labels, nodes=scene.nodes) if units is None else None,
        sampled=chosen.sampled,
    )


def components(edges: IntArray, count: int) -> IntArray:
    """[n] the connected component of each of so many nodes, from edges [2, E] in either direction."""
    joined = csr_array((np.ones(edges.shape[1]), (edges[0], edges[1])), shape=(count, count))
    return np.asarray(connected_components(joined, directed=False)[1], dtype=np.int64)


def _least(fprs: Sequence[float], members: BoolArray) -> int:
    """How many nodes a budget must leave, so that the wanted rates can still be measured."""
    others = max(1e-9, 1 - float(members.mean()))
    return min(len(members), max([200, *(int(np.ceil(1.25 / (fpr * others))) for fpr in fprs)]))


def _fitting(attacks: dict[str, Attack[Any]], scene: Scene) -> tuple[dict[str, Attack[Any]], dict[str, str]]:
    """The attacks that make sense for a scene, and why the others do not."""
    senseless = [name for name, attack in attacks.items() if attack.kind == "graph" and "graph" not in scene.offers]
    if len(senseless) == len(attacks):
        raise InputError(f"attacks: {senseless[0]} is {_NO_TOGGLES}. Name others, such as base, lira or best.")
    kept = {name: attack for name, attack in attacks.items() if name not in senseless}
    return kept, dict.fromkeys(senseless, _NO_TOGGLES)


def _engine(attacks: Mapping[str, Attack[Any]], scene: Scene, *, seed: int) -> str:
    """How far the fast engine is from the rule as written, if an attack relies on it."""
    relying = [attack for attack in attacks.values() if attack.kind == "any" or getattr(attack, "toggles", False)]
    if not relying or "graph" not in scene.offers:
        return "no attack of this audit toggles nodes"
    share = float(scene.shadow_members.mean())
    with scene.keeping():
        asked = (answers_of(attack, scene) for attack in relying)
        known = next((one for one in asked if one is not None), None)
        options: dict[str, Any] = {"nodes": scene.nodes, "share": share, "seed": seed, "answered": known}
        return check_engine(scene.profiled(), scene.data, **options).sentence()


def _owner(data: Data, model: Model | None, trainer: Trainer | None, setting: Setting) -> Trainer:
    """The trainer of the target, if the given options belong together."""
    if trainer is None:
        ours = GNNTrainer(setting=setting)
        if model is not None and not _is_default(model, ours.untrained(data)):
            raise InputError(
                "trainer: missing; shadow models must be trained as the given model was. Pass "
                "trainer=GNNTrainer(model=MyNet, epochs=…), or a function (data, members, seed) -> model."
            )
        return ours
    check_trainer(trainer, graph=True)
    if isinstance(trainer, GNNTrainer) and trainer.setting != setting:
        raise InputError(
            f'setting: the audit has "{setting}", but the trainer trains in the {trainer.setting} setting. Pass '
            f'setting="{trainer.setting}" to audit, or GNNTrainer(setting="{setting}").'
        )
    return trainer


def _is_default(model: Model, ours: nn.Module) -> bool:
    """Whether a given model is the network that the default trainer trains, in its layers and sizes."""
    if type(model) is not GNN:
        return False
    sizes = [[(name, value.shape) for name, value in one.state_dict().items()] for one in (model, ours)]
    return sizes[0] == sizes[1] and traced(model.eval()).signature == traced(ours.eval()).signature


def _column_order(target: Profiled, data: Data, members: BoolArray, setting: Setting) -> tuple[str, ...]:
    """A note if the target's columns seem to be in another order than the labels, by its answers about members."""
    labels = data.y.cpu().numpy().astype(np.int64)
    chosen, own = node_choices(target, data, members, setting=setting), labels[members]
    classes = np.arange(max(int(labels.max()), int(chosen.max(initial=0))) + 1)
    return column_order_note(chosen[own >= 0], own[own >= 0], classes)


def _doubts(scene: Scene, trainer: Trainer, data: Data, members: BoolArray) -> tuple[str, ...]:
    """Warn if the target, or shadow models that we did not train, look as if they were trained in the other setting.

    The owner's graph is ``data``, of whose nodes ``members`` [n] trained the target.
    """
    if scene.setting == "transductive":
        return ()
    ours = isinstance(trainer, GNNTrainer)
    some = slice(_COMPARED if ours else None)
    first, *others = scene.profiled(parts=False)
    target = fit_ratios([first], data, members[np.newaxis])
    if ours and target[0] >= 1:  # whatever the shadow models' ratios are
        return ()
    shadows = fit_ratios(others[some], scene.data, scene.shadow_members[some])
    doubted = [] if ours or not looks_transductive(shadows) else ["all shadow models"]
    if looks_transductive(target, inductive=shadows if ours else None):
        doubted.insert(0, f"the target (its mean loss on members is {target[0]:.2g} times as large there)")
    if not doubted:
        return ()
    remedy = 'setting="transductive"' + (" to the audit and to GNNTrainer" if ours else "")
    return (
        "Some models fit their members better in the whole graph than in the graph of the members alone, so they seem "
        f"to have been trained on the whole graph with a mask: {' and '.join(doubted)}. The audit treats them as "
        f"inductive, so its figures are wrong: pass {remedy}.",
    )


def _oddities(data: Data) -> list[str]:
    """Report once what is unusual about the edges; all of it is handled as PyTorch Geometric's layers do."""
    edges, count = data.edge_index, int(data.num_nodes)
    found = []
    if loops := int((edges[0] == edges[1]).sum()):
        found.append(f"{loops} self-loops")
    # one number per edge: sorting pairs takes many times as long, and ten million edges are sorted here
    ways = (edges.long(), edges.long().flip(0))
    there, back = (np.sort((source * count + end).cpu().numpy()) for source, end in ways)
    if repeated := int((there[1:] == there[:-1]).sum()):
        found.append(f"{repeated} repeated edges")
    if not np.array_equal(there, back):
        found.append("edges in one direction only")
    return [f"The graph has {' and '.join(found)}, handled as PyTorch Geometric does."] if found else []


@register_defences("GNNTrainer")
def network_defences(trainer: GNNTrainer, data: Data) -> Iterator[Defence]:
    """Fewer epochs, more weight decay, more dropout of edges and of values, fewer layers and a narrower network."""
    for part in (2, 4):
        if (epochs := trainer.epochs // part) >= 1:
            yield _changed(trainer, f"epochs={epochs}", epochs=epochs)
    for decay in (1e-3, 1e-2):
        make: Any = trainer.optimizer  # one of torch's, which all take it
        optimizer = functools.partial(make, weight_decay=decay)
        yield _changed(trainer, f"optimizer=adam(weight_decay={decay:g})", optimizer=optimizer)
    for share in (0.2, 0.5):
        if share > trainer.edge_dropout:
            yield _changed(trainer, f"edge_dropout={share:g}", edge_dropout=share)
    if trainer.model is not None:
        yield _changed(trainer, "dropout=0.7", model=functools.partial(with_dropout, trainer.model, 0.7))
        return
    for dropout in (0.5, 0.8):
        if dropout > trainer.dropout:
            yield _changed(trainer, f"dropout={dropout:g}", dropout=dropout)
    if trainer.layers > 1:
        yield _changed(trainer, f"layers={trainer.layers - 1}", layers=trainer.layers - 1)
    if trainer.hidden >= 32:
        yield _changed(trainer, f"hidden={trainer.hidden // 4}", hidden=trainer.hidden // 4)


def _changed(trainer: GNNTrainer, name: str, **change: Any) -> Defence:
    return Defence(name=name, trainer=dataclasses.replace(trainer, **change), code=f"GNNTrainer(…, {name})")
