"""An option is declared once, in `glasshouse.auditing.options`: calls, audit files and the command line follow."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from pydantic import create_model

import glasshouse
import glasshouse.graph
from glasshouse import Attacker, Evaluation, InputError
from glasshouse.auditing.options import GROUPS, OPTIONS, option
from glasshouse.cli import audit as commands
from glasshouse.config import AuditFile, audit_file
from glasshouse.config.audit_file import grouped_keys
from tests.strategies import gaussian_evidence

CALLS = (glasshouse.audit, glasshouse.audit_evidence, glasshouse.graph.audit, glasshouse.audit_targets)
IN_GROUPS = {one.name: one for group in GROUPS.values() for one in dataclasses.fields(group)}
ELSEWHERE = {  # keys of an audit file that are no options of `glasshouse.audit`, or say them in another way
    *("author", "graph", "data", "trainer", "target"),
    *("answers", "minutes", "plan"),
}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.__module__}.{call.__name__}")
def test_help_of_a_call_says_what_every_parameter_means(call: Callable[..., Any]) -> None:
    text = inspect.getdoc(call) or ""
    for name in inspect.signature(call).parameters:
        assert text.count(f"\n    {name}: ") == 1, name
    assert max(map(len, text.splitlines())) <= 120


def test_no_option_is_declared_twice() -> None:
    assert not OPTIONS.keys() & IN_GROUPS.keys()
    for call in CALLS:  # the trainer of a call is the owner's, that of the group the attacker's
        assert inspect.signature(call).parameters.keys() & IN_GROUPS.keys() <= {"trainer"}, call


def test_options_of_a_group_have_their_text_in_its_docstring() -> None:
    for group in GROUPS.values():
        text = inspect.getdoc(group) or ""
        assert all(f"\n    {one.name}: " in text for one in dataclasses.fields(group)), group


def test_an_audit_file_has_the_options_with_their_defaults() -> None:
    keys, call = AuditFile.model_fields, inspect.signature(glasshouse.audit).parameters
    for name, key in keys.items():
        if name in grouped_keys():
            assert key.default == IN_GROUPS[name].default, name
        elif name in call and name not in ELSEWHERE and key.default is not None:  # None: the default of the call
            assert key.default == call[name].default, name
    assert keys.keys() <= ELSEWHERE | OPTIONS.keys() | IN_GROUPS.keys()


def test_the_command_line_has_the_names_of_the_options() -> None:
    known = OPTIONS.keys() | IN_GROUPS.keys() | AuditFile.model_fields.keys() | {"nodes"}
    for_the_run = {"file", "out", "policy", "author", "redact", "key", "overwrite", "shared", "memory", "as_json"}
    where = {"quiet", "verbose", "workers", "cluster", "gpus", "trust_code"}
    audit = inspect.signature(commands.audit).parameters
    assert audit.keys() - for_the_run - where <= known
    score = inspect.signature(commands.score).parameters
    assert score.keys() - for_the_run - where <= known | {"evidence", "epsilon", "delta"}  # the last two are the claim
    assert score["prior"].default == IN_GROUPS["prior"].default


def test_a_new_option_touches_its_declaration_and_its_use_alone() -> None:
    """Declared in ``options.py`` and used in ``steps.py``: audit files and calls pass it on as they are."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class More(Evaluation):
        confidence: float = option(0.95, file="float")

    evidence, members = gaussian_evidence(records=40, models=4, shift=1.0, seed=0)
    with patch.dict(GROUPS, {"evaluation": More}), patch("glasshouse.auditing.call.audit_view") as view:
        file = create_model("File", __base__=AuditFile, __module__=audit_file.__name__, **grouped_keys())
        evaluation = file.model_validate({"fprs": [0.1], "confidence": 0.8}).group("evaluation")
        glasshouse.audit_evidence(evidence, members=members, attacks=["base"], evaluation=evaluation)
    assert evaluation == More(fprs=[0.1], confidence=0.8)
    assert view.call_args.kwargs["evaluation"].confidence == 0.8


def test_an_option_that_an_audit_does_not_use_is_refused() -> None:
    evidence, members = gaussian_evidence(records=40, models=4, shift=1.0, seed=0)
    with pytest.raises(InputError, match="an audit of evidence does not use fraction; leave it out") as caught:
        glasshouse.audit_evidence(evidence, members=members, attacker=Attacker(fraction=0.2, public=members))
    assert len(caught.value.faults) == 2
    with pytest.raises(ValueError, match="public: an audit of a graph does not use it; leave it out"):
        AuditFile.model_validate({"graph": {}, "public": 0.3})


def test_wrong_options_of_the_evaluation_are_refused_where_they_are_written() -> None:
    with pytest.raises(InputError, match="threshold: 'median' is not known"):
        Evaluation(threshold="median")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="claim: 3 is no claim"):
        Evaluation(claim=3)  # type: ignore[arg-type]
    assert AuditFile.model_validate({"threshold": "max"}).group("evaluation").threshold == "max"
    assert np.ndim(Attacker().prior) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"attacker": {"prior": 0.1}}, r"attacker: pass attacker=Attacker\(…\), not a value of type dict"),
        ({"attacker": Evaluation()}, "attacker: pass .*, not a value of type Evaluation"),
        ({"evaluation": None}, "evaluation: pass .*, not a value of type NoneType"),
    ],
)
def test_options_of_another_type_are_refused_in_one_line(options: dict[str, Any], said: str) -> None:
    evidence, members = gaussian_evidence(records=40, models=4, shift=1.0, seed=0)
    with pytest.raises(InputError, match=said):
        glasshouse.audit_evidence(evidence, members=members, **options)


@pytest.mark.parametrize(
    ("call", "options", "said"),
    [
        (glasshouse.audit, {"prior": 0.1}, r"prior: is now .* of Attacker: audit\(…, attacker=Attacker\(prior=0.1\)\)"),
        (glasshouse.graph.audit, {"known_graph": []}, r"known_graph: .* audit\(…, attacker=Attacker\(graph=…\)\)"),
        (glasshouse.audit_evidence, {"policy": "max"}, r"policy: .*, evaluation=Evaluation\(threshold='max'\)\)"),
        (glasshouse.audit_targets, {"fprs": [0.1]}, r"audit_targets\(…, evaluation=Evaluation\(fprs=…\)\)"),
    ],
)
def test_an_option_that_moved_into_a_group_is_an_error_that_names_its_new_place(
    call: Callable[..., Any], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        call(None, **options)


def test_a_word_that_is_no_option_is_pythons_own_error() -> None:
    with pytest.raises(TypeError, match="never_there"):
        glasshouse.audit(None, never_there=1)  # type: ignore[call-arg, arg-type]
