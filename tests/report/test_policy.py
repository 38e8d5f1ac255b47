from __future__ import annotations

import dataclasses
import json
import os
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from glasshouse import AuditResult, Evaluation, InputError, audit_evidence
from glasshouse.cli import app
from glasshouse.config import read_policy
from glasshouse.report import read_run
from glasshouse.report.policy import Finding, Limit, Policy, Verdict, judge, junit_xml
from tests.forked import Forks
from tests.strategies import gaussian_evidence

ROOT = Path(__file__).parents[2]
RELEASE = ROOT / "examples" / "release"
NOW = datetime(2026, 11, 16, tzinfo=UTC)


def audited(shift: float) -> AuditResult:
    evidence, members = gaussian_evidence(records=3000, models=8, shift=shift, seed=1)
    groups = {"sex": np.where(np.arange(3000) % 3 == 0, "a", "b"), "rare": np.arange(3000) < 30}
    return audit_evidence(evidence, members=members, attacks=["base", "rmia"], evaluation=Evaluation(groups=groups))


@pytest.fixture(scope="module")
def leaky() -> AuditResult:
    return audited(2.0)


@pytest.fixture(scope="module")
def tight() -> AuditResult:
    return audited(0.0)


@pytest.fixture(scope="module")
def runs(leaky: AuditResult, tight: AuditResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    leaky.save(folder / "leaky")
    tight.save(folder / "tight")
    return folder


def only(result: AuditResult, limit: Limit, **more: object) -> list[Finding]:
    return list(judge(result.summary(), Policy(limits=(limit,), **more)).findings)  # type: ignore[arg-type]


@pytest.mark.parametrize("end", ["upper", "estimate", "lower"])
@pytest.mark.parametrize("figure", ["tpr", "auc"])
@pytest.mark.parametrize("attack", ["headline", "base"])
def test_the_chosen_end_of_the_interval_decides(leaky: AuditResult, end: str, figure: str, attack: str) -> None:
    """A limit just below the end fails, one just above it passes; with the figures read off the result itself."""
    summary = leaky.summary()
    base = next(one.metrics for one in summary.attacks if one.name == "base")
    assert summary.verdict_attack is not None
    assert base is not None
    source: Any = summary.verdict_attack if attack == "headline" else base
    rate = summary.verdict_attack.rate if attack == "headline" else base.rate_at(0.01)
    assert rate is not None
    at = rate.wanted if figure == "tpr" else None
    value, interval = (rate.tpr, rate.tpr_interval) if figure == "tpr" else (source.auc, source.auc_interval)
    edge = {"upper": interval.high, "estimate": value, "lower": interval.low}[end]
    for most, wanted in ((edge - 1e-9, "failed"), (edge + 1e-9, "passed")):
        limit = Limit(figure=figure, most=most, at_fpr=at, attack=attack)
        assert [one.status for one in only(leaky, limit, end=end)] == [wanted]
        own = dataclasses.replace(limit, end=end)  # type: ignore[arg-type]
        assert [one.status for one in only(leaky, own, end="upper")] == [wanted]


def test_every_attack_has_its_own_line(leaky: AuditResult) -> None:
    found = only(leaky, Limit(figure="auc", most=0.5, attack="every"))
    assert [one.reason.split()[0] for one in found] == ["base", "rmia"]


def test_every_group_has_its_own_line_and_a_small_one_does_not_pass(leaky: AuditResult) -> None:
    found = only(leaky, Limit(figure="auc", most=1, group="sex"))
    assert [(" ".join(one.reason.split()[:2]), one.status) for one in found] == [
        ("sex a", "passed"),
        ("sex b", "passed"),
    ]
    rare = only(leaky, Limit(figure="auc", most=1, group="rare"))
    assert sorted(one.status for one in rare) == ["passed", "unknown"]
    nothing = only(leaky, Limit(figure="auc", most=1, group="age"))
    assert [one.status for one in nothing] == ["unknown"]
    assert "rare, sex" in nothing[0].reason


def test_epsilon_is_the_bound_that_the_attacks_show(leaky: AuditResult) -> None:
    privacy = leaky.summary().privacy
    assert privacy is not None
    assert privacy.shown > 0
    statuses = [only(leaky, Limit(figure="epsilon", most=most))[0].status for most in (privacy.shown - 1e-9, 99.0)]
    assert statuses == ["failed", "passed"]


def test_what_was_not_measured_does_not_pass(leaky: AuditResult) -> None:
    for limit in (Limit(figure="tpr", most=1, at_fpr=0.3), Limit(figure="auc", most=1, attack="lira")):
        assert [one.status for one in only(leaky, limit)] == ["unknown"]
    evidence, _ = gaussian_evidence(records=200, models=4, shift=1.0, seed=0)
    blind = audit_evidence(evidence, attacks=["base"])
    assert [one.status for one in only(blind, Limit(figure="auc", most=1))] == ["unknown"]


def test_a_run_with_a_warning_or_members_not_drawn_at_random_does_not_pass(tight: AuditResult) -> None:
    summary = tight.summary()
    policy = Policy(limits=(Limit(figure="auc", most=1.0),))
    assert judge(summary, policy).exit_code == 0
    doubted = dataclasses.replace(summary, context=dataclasses.replace(summary.context, warnings=("Members swapped.",)))
    assert judge(doubted, policy).exit_code == 4
    assert summary.verdict_attack is not None
    unsure = dataclasses.replace(summary, verdict_attack=dataclasses.replace(summary.verdict_attack, leak=None))
    assert judge(unsure, policy).exit_code == 4


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ({"attacks": ("base",)}, "passed"),
        ({"attacks": ("lira",)}, "failed"),
        ({"shadows": 8}, "passed"),
        ({"shadows": 10}, "failed"),
        ({"age_days": 3.5}, "passed"),
        ({"age_days": 2.5}, "failed"),
    ],
)
def test_what_the_run_must_have_been(tight: AuditResult, policy: dict[str, object], wanted: str) -> None:
    made = Policy(limits=(Limit(figure="auc", most=1.0),), **policy)  # type: ignore[arg-type]
    summary = dataclasses.replace(tight.summary(), written=NOW - timedelta(days=3))
    assert judge(summary, made, now=NOW).findings[0].status == wanted


def test_a_run_of_unknown_or_impossible_age_does_not_pass(tight: AuditResult) -> None:
    made = Policy(limits=(Limit(figure="auc", most=1.0),), age_days=10)
    for written in (None, NOW + timedelta(days=5)):
        assert judge(dataclasses.replace(tight.summary(), written=written), made, now=NOW).exit_code == 4


def test_a_limit_that_makes_no_sense_is_refused() -> None:
    for wrong, why in (
        ({"figure": "tpr", "most": 0.1}, "at_fpr: is missing"),
        ({"figure": "tpr", "most": 5.0, "at_fpr": 0.01}, "write 5 % as 0.05"),
        ({"figure": "auc", "most": 0.6, "at_fpr": 0.01}, "belongs to a tpr"),
        ({"figure": "epsilon", "most": 1.0, "attack": "base"}, "one bound of the whole run"),
        ({"figure": "auc", "most": 0.6, "group": "sex", "attack": "base"}, "leave attack out"),
        ({"figure": "auc", "most": float("nan")}, "is not a limit"),
    ):
        with pytest.raises(InputError, match=why):
            Limit(**wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="limits: the policy has none"):
        Policy(limits=())


def test_junit_is_xml_whatever_the_names_hold() -> None:
    findings = [
        Finding(rule="a<b>&\x00\x1b", status=status, reason='"\ud800]]>') for status in ("passed", "failed", "unknown")
    ]
    suite = ET.fromstring(junit_xml(Verdict(findings=findings), name="run"))  # noqa: S314 (our own text)
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert [len(case) for case in suite] == [0, 1, 1]


def test_a_pipeline_passes_one_run_and_stops_the_other(runs: Path, forks: Forks, tmp_path: Path) -> None:
    """With the example's own policy; the one that fails as a build server calls it, in a process of its own."""
    common = ["--policy", str(RELEASE / "risk.yaml"), "--junit"]
    passed = CliRunner().invoke(app, ["check", str(runs / "tight"), *common, str(tmp_path / "tight.xml")])
    call = "from glasshouse.cli import main; main()"
    failed = forks.run(call, "check", runs / "leaky", *common, tmp_path / "leaky.xml", folder=tmp_path)
    assert (passed.exit_code, failed.returncode) == (0, 3), passed.output + failed.stdout + failed.stderr
    for name, failures, told in (("tight", "0", passed.output), ("leaky", "2", failed.stdout)):
        suite = ET.parse(tmp_path / f"{name}.xml").getroot()  # noqa: S314 (our own file)
        assert (suite.get("failures"), suite.get("errors")) == (failures, "0")
        assert len(suite) == len(told.splitlines()) - 1


def test_json_says_the_same(runs: Path) -> None:
    done = CliRunner().invoke(app, ["check", str(runs / "leaky"), "--policy", str(RELEASE / "risk.yaml"), "--json"])
    told = json.loads(done.output)
    assert (done.exit_code, told["status"]) == (3, "failed")
    assert {one["status"] for one in told["findings"]} == {"passed", "failed"}


def test_the_example_of_a_release_test_runs(
    runs: Path, forks: Forks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSHOUSE_RUN", str(runs / "leaky"))
    call = "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
    options = ["-q", "-p", "no:cacheprovider", "--noconftest", "-c", os.devnull]
    done = forks.run(call, *options, RELEASE / "test_release.py", folder=tmp_path)
    assert "1 failed" in done.stdout, done.stdout + done.stderr
    assert "FAIL  TPR at 1 % FPR" in done.stdout


def test_the_action_calls_commands_and_options_that_exist() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    steps = [step["run"] for step in action["runs"]["steps"] if "run" in step]
    for step in (one.split() for one in steps if one.startswith("glasshouse ")):
        told = CliRunner().invoke(app, [step[1], "--help"], env={"COLUMNS": "200"}).output
        assert all(option in told for option in step if option.startswith("--"))


def test_a_saved_run_says_when_it_was_written(runs: Path, tmp_path: Path) -> None:
    written = read_run(runs / "tight").written
    assert written is not None
    assert abs(datetime.now(UTC) - written) < timedelta(hours=1)
    (tmp_path / "run.json").write_text('{"format": 6, "written": "yesterday"}')
    with pytest.raises(InputError, match="run.json: written: is damaged, or is not a date"):
        read_run(tmp_path)


def test_a_policy_file_names_all_its_faults(tmp_path: Path) -> None:
    path = tmp_path / "risk.yaml"
    path.write_text("limits:\n  - {figure: tpr, most: 0.1}\n  - {figur: auc, most: -1}\nend: top\n")
    with pytest.raises(InputError) as caught:
        read_policy(path)
    assert len(caught.value.faults) == 5
    assert all(fault.startswith(str(path)) for fault in caught.value.faults)
