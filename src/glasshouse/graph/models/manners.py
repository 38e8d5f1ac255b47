"""How a model on a graph wants to be asked, what its answers are, and what a reader should know about that."""

from __future__ import annotations

from dataclasses import dataclass

from glasshouse.graph.models.arguments import Arguments
from glasshouse.graph.programs.program import Program
from glasshouse.model_outputs import SHARES_NOTE

__all__ = ["UNKNOWN_HOPS", "Manners", "notes_on"]

UNKNOWN_HOPS = 2  # for a callable that states nothing and was not measured
_PLAIN = Arguments()  # x and edge_index


@dataclass(frozen=True, kw_only=True)
class Manners:
    """How a model wants to be asked, and what its answers are.

    Args:
        hops: L, how many steps along the edges a change can travel to an answer.
        everywhere: whether an answer depends on the whole graph; the model is then asked on whole graphs only.
        both_ways: whether all edges of the graph go both ways, if that decides how a model is asked: one that uses
            out-degrees is asked about whole graphs if they do not. None for all other models.
        arguments: what it is called with: one `Data`, or ``x``, ``edge_index`` and values of the edges.
        probabilities: whether it gives probabilities instead of logits.
        shares: whether it gives numbers between 0 and 1 that are no probabilities of all classes.
        program: what it does, as calls that engines can take apart; None for a black box.
        obstacle: why there is no program, in one line.
        measured: whether ``hops`` and ``everywhere`` were measured; not if all queries are about whole graphs.
        notes: what a reader of the report should know about this.

    Example:
        >>> Manners().hops  # of a callable that states nothing and was not measured
        2
    """

    hops: int = UNKNOWN_HOPS
    everywhere: bool = False
    both_ways: bool | None = None
    arguments: Arguments = _PLAIN
    probabilities: bool = False
    shares: bool = False
    program: Program | None = None
    obstacle: str = ""
    measured: bool = True
    notes: tuple[str, ...] = ()


def notes_on(manners: Manners, *, stated: object) -> tuple[str, ...]:
    """What a reader of the report should know about how a model is asked.

    Args:
        manners: of the model.
        stated: its attribute ``hops``, if it has one.

    Example:
        >>> notes_on(Manners(hops=3), stated=2)
        ('The model says hops = 2, but its answers change up to 3 steps away; 3 is used.',)
    """
    notes = []
    if manners.everywhere and manners.both_ways is False:
        notes.append(
            "The model's answers about a node depend on edges that lead away from it or its neighbours (as with "
            "out-degrees), and the edges of the graph do not all go both ways, so every toggle asks it about a whole "
            "graph, and the sum of eq. (6) runs over all members."
        )
    elif manners.everywhere:
        notes.append(
            "The model's answers about a node depend on the whole graph (as with GraphNorm, a virtual node or the "
            "number of nodes), so every toggle asks it about a whole graph, and the sum of eq. (6) runs over all "
            "members."
        )
    elif manners.obstacle:
        notes.append(
            f"The model is asked as a black box, which is exact but slow: {manners.obstacle}. A module of layers and "
            f"operations on single nodes would be taken apart."
        )
    if not manners.everywhere and isinstance(stated, int) and stated < manners.hops:
        notes.append(
            f"The model says hops = {stated}, but its answers change up to {manners.hops} steps away; "
            f"{manners.hops} is used."
        )
    if manners.probabilities:
        notes.append(
            "The model answers with probabilities (rows are not negative and sum to 1); they are used as such, not "
            "as logits."
        )
    if manners.shares:
        notes.append(SHARES_NOTE)
    notes += [f"The graph has {name}, which the model does not use." for name in manners.arguments.unused]
    notes += [
        f"The model is given the graph's {name} as its argument {parameter}."
        for parameter, name in manners.arguments.bound
    ]
    return tuple(notes)
