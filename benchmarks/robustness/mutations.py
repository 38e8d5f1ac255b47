"""Faults put into central code on purpose, one at a time, and which tests notice each.

Run: python benchmarks/robustness/mutations.py [NAME ...]. Writes mutations.md beside itself; all faults take a quarter
of an hour, and rows of faults that are not named stay. Works in a copy of the checkout, never in the checkout. For
each fault the module's own tests run first, then its doctests, then tests of its room. Exit code 1 if a fault
survives, or if the code that it changes is not found exactly once.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

ROOT = Path(__file__).parents[2]
_COPIED = ("src", "tests", "benchmarks", "experiments", "docs", "pyproject.toml")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc", "*.html")
# other people's, imported once before the tests are forked; never glasshouse, which is the copy's
_IMPORTED = ("pytest", "scipy.stats", "sklearn.ensemble", "torch", "torch_geometric.nn", "numba", "rich")

Caught = Literal["own tests", "doctest", "tests of the room", "survived", "not found"]
MISSED = ("survived", "not found")
HEAD = ("| fault | file | caught by | first test |", "| --- | --- | --- | --- |")


class Mutation(NamedTuple):
    """A fault: what stands in a file of ``src/glasshouse``, and what is written in its place.

    Args:
        name: what goes wrong.
        file: of the package.
        found: a short piece of it, which occurs once.
        put: instead of that.
        own: the module's own tests, which should notice.
        room: more tests, if they do not.
    """

    name: str
    file: str
    found: str
    put: str
    own: str
    room: str = ""

    @property
    def times(self) -> int:
        """How often the piece occurs in the checkout."""
        return (ROOT / "src" / "glasshouse" / self.file).read_text(encoding="utf-8").count(self.found)


_EVALUATION = "tests/evaluation"
_RULE = "tests/graph/rule"
_PATH = f"{_RULE}/two_layers/test_engine.py::test_a_path_whose_ends_lose_their_only_neighbour_is_exact"
_KERNELS = f"{_RULE}/two_layers/test_engine.py::test_a_dense_graph_with_a_hub_is_exact"
_LAYERED = f"{_RULE}/incremental/test_engine.py"
_CHAINS = "tests/graph/sampling"

MUTATIONS = (
    # attacks
    Mutation("BASE: the sign of the expected confidence", "attacks/base.py", "-loss - scale * expected",
             "-loss + scale * expected", "tests/attacks/test_base.py"),
    Mutation("BASE: the prior lost", "attacks/base.py", "expit(ratios + prior_log_odds(self.prior, len(ratios)))",
             "expit(ratios)", "tests/attacks/test_base.py"),
    Mutation("prior weights: shares of records, not of models", "attacks/prior.py",
             "members.mean(axis=-1, keepdims=True)", "members.mean(axis=0, keepdims=True)",
             "tests/attacks/test_prior.py"),
    Mutation("another prior: the learned share added, not taken away", "attacks/prior.py", "- logit(share)",
             "+ logit(share)", "tests/attacks/test_prior.py"),
    Mutation("LiRA: degrees of freedom of the pooled variance", "attacks/in_out_moments.py",
             "(self.models - 1).sum()", "self.models.sum()", "tests/attacks/test_lira.py"),
    Mutation("LiRA: the logarithm of the spread lost", "attacks/lira.py", "- _LOG_OF_ROOT - np.log(sd)",
             "- _LOG_OF_ROOT", "tests/attacks/test_lira.py"),
    Mutation("RMIA: offline a as its complement", "attacks/rmia.py", "confidence() + (1 - share)",
             "confidence() + share", "tests/attacks/test_rmia.py"),
    Mutation("RMIA: gamma multiplied, not divided by", "attacks/rmia.py", "ranked[some] - np.log(self.gamma)",
             "ranked[some] + np.log(self.gamma)", "tests/attacks/test_rmia.py"),
    Mutation("RMIA: simulated targets without weights", "attacks/rmia.py",
             "else prior_weights(members, self.prior)", "else np.ones(len(ratios))",
             "tests/attacks/test_rmia.py", "tests/evaluation/test_thresholds.py"),
    Mutation("shrunk LiRA: noise of the shifts not taken away", "attacks/regressed.py", "scatter - float(noise.mean())",
             "scatter", "tests/attacks/test_shrunk.py"),
    Mutation("BaVarIA: predictive without the error of the mean", "attacks/lira.py",
             "variance * (1 + 1 / side.models)", "variance", "tests/attacks/test_bavaria.py"),
    Mutation("BaVarIA: degrees of freedom of a record", "attacks/lira.py", "own = side.models - 1\n",
             "own = side.models\n", "tests/attacks/test_bavaria.py"),
    Mutation("regressed: a record is judged by its own fold", "attacks/regressed.py",
             "(key[1] != fold or len(keys) == 2)",
             "(key[1] == fold or len(keys) == 2)",
             "tests/attacks/test_regression.py", "tests/attacks/test_regressed.py"),
    Mutation("regressed: degrees of freedom of the covariance", "attacks/regressed.py", "max(rows - width, 1)",
             "max(rows, 1)", "tests/attacks/test_regression.py", "tests/attacks/test_regressed.py"),
    Mutation("stacked: the ratio of the wrong sides", "attacks/stacked.py", "inside - outside, own_inside",
             "outside - inside, own_inside", "tests/attacks/test_features.py"),
    Mutation("stacked: offline asks in-models too", "attacks/stacked.py",
             'asked = None if mode == "online" else ~members', "asked = None",
             "tests/attacks/test_features.py"),
    Mutation("moments: squares around 0", "attacks/in_out_moments.py",
             "apart = means - mean", "apart = means + 0",
             "tests/attacks/test_in_out_moments.py"),
    Mutation("moments: squares within groups lost", "attacks/in_out_moments.py",
             "around + squares.sum(axis=0)", "around",
             "tests/attacks/test_in_out_moments.py"),
    Mutation("models that were left out stay so", "attacks/in_out_moments.py", "zip(level, kept, strict=True)",
             "zip([], [], strict=True)", "tests/attacks/test_in_out_moments.py"),
    # evidence, losses, draws
    Mutation("simulated targets keep their complement", "evidence/simulation.py",
             "[[min(k, complement)], [max(k, complement)]]", "[[k]]", "tests/evidence/test_simulation.py"),
    Mutation("balanced pools: always the same place of the circle", "evidence/simulation.py", "start >= k",
             "start < 0", "tests/evidence/test_simulation.py"),
    Mutation("regression: the spread of members", "evidence/collect.py", "where=~members", "where=members",
             "tests/evidence/test_regression.py"),
    Mutation("regression: a log-variance left out of the loss", "evidence/collect.py",
             "+ log_variance - log_variance.min()", "", "tests/evidence/test_regression.py"),
    Mutation("losses: the record's own class among the others", "core/outputs.py",
             "scaled[rows, labels] = -np.inf", "pass",
             "tests/core/test_losses.py"),
    Mutation("losses of tensors: the own class among the others", "core/outputs.py",
             "others.scatter_(0, own_row, -torch.inf)", "pass", "tests/core/test_losses.py"),
    Mutation("mean confidence: a sum, not a mean", "core/numerics.py", ".sum(axis=0)) - np.log(count)", ".sum(axis=0))",
             "tests/core/test_numerics.py"),
    Mutation("margins: the sign", "core/numerics.py", "(np.expm1, np.log, np.negative)", "(np.expm1, np.log)",
             "tests/core/test_numerics.py"),
    Mutation("area: ties count in full", "core/numerics.py",
             "(upto - below[tied]).sum() / 2", "(upto - below[tied]).sum()",
             "tests/core/test_numerics.py"),
    Mutation("halves: every pair from one stream", "data/members.py", 'generator(seed, "halves", pair)',
             'generator(seed, "halves")', "tests/data/test_population.py"),
    Mutation("halves: the second is not the complement", "data/members.py", "= ~members[2 * pair]",
             "= members[2 * pair]", "tests/data/test_population.py"),
    # evaluation
    Mutation("ROC: one record too few is flagged", "evaluation/roc.py", "called = last_of_tie + 1",
             "called = last_of_tie", f"{_EVALUATION}/test_roc.py"),
    Mutation("ROC: the first of equal rates", "evaluation/roc.py", 'allowed, side="right")) - 1',
             'allowed, side="left")) - 1', f"{_EVALUATION}/test_roc.py"),
    Mutation("allowed false positives without a tolerance", "evaluation/roc.py", "non_members * (1 + 1e-12)",
             "non_members", f"{_EVALUATION}/test_roc.py"),
    Mutation("Clopper and Pearson: one trial too few", "evaluation/intervals.py",
             "np.subtract(trials, successes) + 1", "np.subtract(trials, successes)",
             f"{_EVALUATION}/test_intervals.py"),
    Mutation("DeLong: ddof", "evaluation/intervals.py", "np.var(part, ddof=1)", "np.var(part, ddof=0)",
             f"{_EVALUATION}/test_intervals.py"),
    Mutation("TPR: the interval as if the threshold were known", "evaluation/intervals.py",
             'wrong[last], side="left")], right[last]', 'wrong[last], side="right") - 1], right[last]',
             f"{_EVALUATION}/test_intervals.py"),
    Mutation("thresholds: Student's degrees of freedom", "evaluation/thresholds.py", "student.ppf(1 - tail, count - 1)",
             "student.ppf(1 - tail, count)", f"{_EVALUATION}/test_thresholds.py"),
    Mutation("thresholds: a new target's own error left out", "evaluation/thresholds.py", "* (1 + 1 / count)", "",
             f"{_EVALUATION}/test_thresholds.py"),
    Mutation("thresholds: judged with the target among them", "evaluation/thresholds.py", "np.delete(own, at)", "own",
             f"{_EVALUATION}/test_thresholds.py"),
    Mutation("leak test: its own labels do not count", "evaluation/leakage.py", 'value, side="right")',
             'value, side="left")', f"{_EVALUATION}/test_leak.py"),
    Mutation("leak test: a threshold inside a tie", "evaluation/leakage.py", "attack.last_of_tie[:top] & ", "",
             f"{_EVALUATION}/test_leak.py"),
    Mutation("list: conformal levels without their own record", "evaluation/thresholds.py",
             "(1 + self._count - np.cumsum(", "(self._count - np.cumsum(", f"{_EVALUATION}/test_discoveries.py"),
    Mutation("list: levels that fall with the p-value", "evaluation/thresholds.py",
             "np.minimum.accumulate(raised[::-1])[::-1]", "raised", f"{_EVALUATION}/test_discoveries.py"),
    Mutation("difference of TPR: one comparison of many", "evaluation/difference.py",
             "_percentiles(samples, (1 - confidence) / comparisons)", "_percentiles(samples, 1 - confidence)",
             f"{_EVALUATION}/test_difference.py"),
    Mutation("difference of AUC: paired as unpaired", "evaluation/difference.py", "_error(*(b - a for a, b in",
             "_error(*(b + a for a, b in", f"{_EVALUATION}/test_difference.py"),
    Mutation("whole graph: as if nothing were left out", "evaluation/intervals.py",
             "1 - counts / np.maximum(sampled.sizes, 1)", "np.ones(len(counts))",
             f"{_EVALUATION}/test_sampling_intervals.py"),
    Mutation("ε: of guesses made, not of those possible", "evaluation/privacy/bounds.py",
             "np.maximum(guesses.possible, 1)", "np.maximum(guesses.made, 1)", f"{_EVALUATION}/test_privacy.py"),
    Mutation("ε: Gaussian recursion without its sum of tails", "evaluation/privacy/bounds.py",
             "(above + wrong) / (made - count)", "wrong / (made - count)", f"{_EVALUATION}/test_privacy.py"),
    Mutation("ε: Gaussian recursion without the odds", "evaluation/privacy/bounds.py", "wrong = possible / odds *",
             "wrong = possible *", f"{_EVALUATION}/test_privacy.py"),
    Mutation("mismatch: weights of another prior", "evaluation/checks/calibration.py",
             "prior_weights(evidence.shadow_members[plan.targets], prior,",
             "prior_weights(evidence.shadow_members[plan.targets], 0.5,", f"{_EVALUATION}/checks/test_mismatch.py"),
    Mutation("calibration: bins of equal weight", "evaluation/checks/calibration.py", "total[filled] / total.sum()",
             "np.full(filled.sum(), 1 / filled.sum())", f"{_EVALUATION}/checks/test_calibration.py"),
    Mutation("groups: one comparison of many", "evaluation/groups.py",
             "_ERROR / max(1, len(split))", "_ERROR",
             f"{_EVALUATION}/test_groups.py"),
    Mutation("groups: rates of all records", "evaluation/groups.py", "called[at][who].sum()", "called[at].sum()",
             f"{_EVALUATION}/test_groups.py"),
    Mutation("power: the spread of the rank test", "evaluation/leakage.py",
             "return math.sqrt((members + non_members + 1) / (12",
             "return math.sqrt((members + non_members + 1) / (6", f"{_EVALUATION}/test_power.py"),
    # graphs
    Mutation("rule: neighbours of one hop only", "graph/rule/reference.py", "hops=profile.hops, size", "hops=1, size",
             "tests/graph/rule/test_reference.py"),
    Mutation("reach: a sender without senders of its own", "graph/programs/reach.py",
             ", (12, 5), (13, 12), (12, 13),", ",",
             "tests/graph/programs/test_dependence.py"),
    Mutation("rule: the sign of the change", "graph/rule/reference.py", "(loss_in - loss_out)[summed]",
             "(loss_out - loss_in)[summed]", "tests/graph/rule/test_reference.py"),
    Mutation("ego nets: a removed node still sends", "graph/rule/ego_nets.py",
             "present = (~rings.gone(sender, receiver)).nonzero()", "present = torch.ones_like(sender).nonzero()",
             f"{_RULE}/incremental/test_any_layer.py"),
    Mutation("ego nets: messages of an added node lost", "graph/rule/ego_nets.py",
             "torch.cat([receiver[present], added_to[seen]])",
             "torch.cat([receiver[present], added_to[seen] * 0 + added_from[seen]])",
             f"{_RULE}/incremental/test_any_layer.py"),
    Mutation("layered: a removed node keeps its sign", "graph/rule/incremental/program.py",
             "torch.where(removed, -total, total)", "total", _LAYERED),
    Mutation("layered sums: messages of the target as a change", "graph/rule/incremental/sum.py",
             "torch.where(step.rings.removes.unsqueeze(1), -old[centre], fresh[centre])", "(fresh - old)[centre]",
             _LAYERED),
    Mutation("layered sums: the message to itself left out", "graph/rule/incremental/sum.py",
             "rows.index_add_(0, paths.inside, own)", "pass", _LAYERED),
    Mutation("layered maximum: a lost maximum is kept", "graph/rule/incremental/maximum.py",
             "(left >= before) & (arrived < before)", "(left > before) & (arrived < before)", _LAYERED),
    Mutation("layered attention: an added node sent before", "graph/rule/incremental/attention.py",
             "leaves = (step.kind != 2)", "leaves = (step.kind != 1)", _LAYERED),
    Mutation("GCN kernel: the degree before the toggle", "graph/rule/two_layers/gcn.py",
             "s_new = rsqrt[1 + count[x] + sign]", "s_new = rsqrt[1 + count[x]]", f"{_KERNELS} -k gcn"),
    Mutation("GCN kernel: the own message before the toggle", "graph/rule/two_layers/gcn.py",
             "(sign if i < near else 0)", "0", f"{_KERNELS} -k gcn"),
    Mutation("SAGE kernel: the runner-up of one neighbour", "graph/rule/two_layers/sage.py",
             "(second[u, f] if count > 1 else _ZERO) - x", "second[u, f] - x",
             f"{_PATH} -k sage", f"{_RULE}/two_layers/test_engine.py -k sage"),
    Mutation("GAT kernel: the wrong branch of the slope", "graph/rule/two_layers/gat.py",
             "out[0, j] -= upper if source[s, 2, j] > -to[t, 3, j] else lower",
             "out[0, j] -= upper if source[s, 2, j] > to[t, 3, j] else lower", f"{_RULE}/two_layers/test_attention.py",
             f"{_KERNELS} -k gat"),
    Mutation("GAT kernel: a removed node still counts", "graph/rule/two_layers/gat.py", "elif w != v:", "else:",
             f"{_KERNELS} -k gat"),
    Mutation("chains: the prior lost", "graph/sampling/posterior.py",
             "np.exp(-log_ratio(signal, usable) - prior_logit)", "np.exp(-log_ratio(signal, usable))",
             f"{_CHAINS}/test_posterior.py"),
    Mutation("Gibbs: a node joins where it should leave", "graph/sampling/gibbs.py",
             "joins = chance < membership_probability(", "joins = chance >= membership_probability(",
             f"{_CHAINS}/test_groups.py -k none"),
    Mutation("Gibbs kernel: a node joins where it should leave", "graph/sampling/gibbs.py",
             "joins = uniform[i] < membership_probability(", "joins = uniform[i] >= membership_probability(",
             f"{_CHAINS}/test_gibbs.py::test_a_compiled_chain_takes_the_steps_of_the_rule_as_written -k gcn"),
    Mutation("Metropolis: tuned away from the wanted rate", "graph/sampling/metropolis.py",
             "(acceptance_rate - _WANTED)", "(_WANTED - acceptance_rate)", f"{_CHAINS}/test_proposal.py"),
    Mutation("Metropolis: models that trained on a node are asked", "graph/sampling/posterior.py",
             "(-shadows).masked_fill(~counted, -torch.inf)", "(-shadows)",
             f"{_CHAINS}/test_posterior.py", f"{_CHAINS}/test_together.py"),
    Mutation("G-BASE: the mean over other samples", "graph/attacks/graph_attack.py",
             "log_odds(signals[0, i], signals[1:, i], usable)", "log_odds(signals[0, i], signals[1:, 0], usable)",
             "tests/graph/attacks/test_g_base.py"),
    Mutation("G-BASE: the prior lost", "graph/attacks/graph_attack.py", "expit(one + odds)", "expit(one)",
             "tests/graph/attacks/test_g_base.py"),
    Mutation("g-edge: a learned prior turned round", "graph/attacks/g_edge.py",
             "examples.present[apart]", "~examples.present[apart]", "tests/graph/attacks/test_g_edge.py"),
    Mutation("g-edge: no weight from simulated targets", "graph/attacks/g_edge.py",
             "found * max(0.0, float(weight[0, 0]))", "found", "tests/graph/attacks/test_g_edge.py"),
    Mutation("node-level privacy: a clipped gradient without its bias", "graph/training/private.py",
             "(1 + a.square().sum(1))", "a.square().sum(1)", "tests/graph/training/test_private.py"),
    Mutation("g-stacked: gain over the wrong side", "graph/attacks/stacking/features.py",
             "gain - _mean_gain(gains, ~signals.members)", "gain - _mean_gain(gains, signals.members)",
             "tests/graph/attacks/stacking/test_features.py"),
    Mutation("g-stacked: the mean of neighbours as a sum", "graph/attacks/stacking/features.py",
             "summed / np.maximum(degree, 1)", "summed", "tests/graph/attacks/stacking/test_features.py"),
    Mutation("trainer: non-members have a loss", "graph/training/trainer.py",
             "labelled &= torch.from_numpy(members).to(stored)", "pass", "tests/graph/training/test_trainer.py",
             "tests/graph/training/test_setting.py"),
    Mutation("trainer: no decay of weights", "graph/training/trainer.py",
             "torch.optim.Adam, lr=lr, weight_decay=weight_decay", "torch.optim.Adam, lr=lr",
             "tests/graph/training/test_trainer.py"),
    # reports
    Mutation("report: TPR in the column of FPR", "report/figures.py",
             "RateFigure(rate.wanted, rate.fpr, rate.estimate,", "RateFigure(rate.wanted, rate.estimate, rate.fpr,",
             "tests/report/test_figures.py", "tests/report/test_summarise.py"),
    Mutation("report: false alarms among all records", "report/figures.py", "who[~members].mean()", "who.mean()",
             "tests/report/test_figures.py"),
    Mutation("report: the low end twice", "report/decision/first_page.py", "high=per * figure.tpr_interval.high",
             "high=per * figure.tpr_interval.low", "tests/report/test_first_page.py"),
    Mutation("report: chance from the rate that was found", "report/decision/first_page.py",
             "chance=per * figure.chance", "chance=per * figure.fpr", "tests/report/test_first_page.py"),
)  # fmt: skip


class Result(NamedTuple):
    """How a fault ended, and the first test that noticed."""

    mutation: Mutation
    caught: Caught
    test: str
    seconds: float


@contextlib.contextmanager
def copied() -> Iterator[Path]:
    """A copy of the checkout, without what was compiled from it."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as place:
        for name in _COPIED:
            source, target = ROOT / name, Path(place) / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=_LEFT_OUT)
            elif source.exists():
                shutil.copy(source, target)
        yield Path(place)


def tried(mutation: Mutation, copy: Path, sound: set[str]) -> Result:
    """Put the fault into the copy, test it, and take it out again; the test that notices must pass without it.

    Args:
        mutation: the fault.
        copy: of the checkout.
        sound: tests that are known to pass without a fault; those that are found to are added.
    """
    began = time.perf_counter()
    path = copy / "src" / "glasshouse" / mutation.file
    source = path.read_text(encoding="utf-8")
    if source.count(mutation.found) != 1:
        return Result(mutation, "not found", "", 0.0)
    stages: list[tuple[Caught, str]] = [
        ("own tests", mutation.own),
        ("doctest", f"--doctest-modules src/glasshouse/{mutation.file}"),
        ("tests of the room", mutation.room),
    ]
    for caught, paths in stages:
        path.write_text(source.replace(mutation.found, mutation.put), encoding="utf-8")
        try:
            failed = first_failure(paths.split(), copy) if paths else ""
        finally:
            path.write_text(source, encoding="utf-8")
        if not failed:
            continue
        if failed not in sound and first_failure(["--doctest-modules", failed], copy):
            raise RuntimeError(f"{failed} fails without a fault too.")
        sound.add(failed)
        return Result(mutation, caught, failed, time.perf_counter() - began)
    return Result(mutation, "survived", "", time.perf_counter() - began)


def first_failure(arguments: Sequence[str], copy: Path) -> str:
    """The first test that fails in the copy, as pytest names it; empty if all pass. Raises if none could run.

    In a fork of this process, which has imported the large libraries; kernels are compiled into an empty folder.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as told:
            said = told.read()
        os.waitpid(child, 0)
        if not said.startswith(("passed ", "failed ")):
            raise RuntimeError(f"{' '.join(arguments)}: {said or 'the process ended'}")
        return said.removeprefix("passed ").removeprefix("failed ")
    os.close(reading)
    said = ""
    try:
        said = _tested(arguments, copy)
    except BaseException as error:  # told to the parent, which raises
        said = repr(error)
    finally:
        os.write(writing, said.encode())
        os._exit(0)


def _tested(arguments: Sequence[str], copy: Path) -> str:
    pytest = importlib.import_module("pytest")
    with tempfile.TemporaryDirectory(prefix="kernels-") as kernels:
        for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
            os.environ[name] = kernels
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they take longer to load than most tests to run
        if "numba" in sys.modules:
            sys.modules["numba"].config.reload_config()
        os.chdir(copy)
        ours = {str(Path(__file__).parent), str(ROOT), *(str(ROOT / name) for name in ("src", "experiments"))}
        places = [copy, *(copy / name for name in ("src", "experiments", "benchmarks/robustness"))]
        sys.path[:] = [*map(str, places), *(one for one in sys.path if one not in ours)]
        sys.dont_write_bytecode = True  # the time of a file is too coarse to tell a fault from the file as it was
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            usual = ["-x", "-q", "-rfE", "-p", "no:cacheprovider", "-o", "addopts=", "--strict-markers", "--no-header"]
            code = int(pytest.main([*usual, *arguments]))
        owner = str(importlib.import_module("glasshouse").__file__)
    if not owner.startswith(str(copy)):
        raise RuntimeError(f"{owner} was tested, not the copy {copy}")
    if code == 0:
        return "passed "
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", said.getvalue(), flags=re.MULTILINE)
    if code == 5 and "--doctest-modules" in arguments:  # nothing to collect: the module has no doctest
        return "passed "
    return f"failed {failed[1]}" if failed else f"pytest ended with {code}: {said.getvalue()[-2000:]}"


def row_of(result: Result) -> str:
    """A row of the page."""
    test = result.test.partition("[")[0].removeprefix("tests/")
    cells = (result.mutation.name, f"`{result.mutation.file}`", result.caught, f"`{test}`" if test else "")
    return "| " + " | ".join(cells) + " |"


def page(rows: Sequence[str]) -> str:
    """The score and a row for each fault, as Markdown."""
    ends = [row.split(" | ")[2] for row in rows]
    lines = [
        "# Faults put into central code, and which tests notice",
        "",
        f"`python benchmarks/robustness/mutations.py`: {sum(end not in MISSED for end in ends)} of {len(rows)} "
        f"are caught, "
        f"{ends.count('own tests')} of them by the module's own",
        "tests. These run first, then the module's doctests, then tests of its room. The first test that fails is",
        "named; without the fault it passes.",
        "",
        *HEAD,
        *rows,
    ]
    return "\n".join(lines) + "\n"


def kept_rows(path: Path) -> dict[str, str]:
    """The rows of an earlier page, by the name of the fault."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines if line.startswith("| ")}


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the faults that are named, or all of them; rows of the others stay as they are on the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="parts of the names of faults; all by default")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args(arguments)
    chosen = [one for one in MUTATIONS if not options.names or any(part in one.name for part in options.names)]
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in _IMPORTED:
        importlib.import_module(name)
    rows, missed, sound = kept_rows(options.out), 0, set[str]()
    with copied() as copy:
        for mutation in chosen:
            one = tried(mutation, copy, sound)
            missed += one.caught in MISSED
            rows[mutation.name] = row_of(one)
            print(f"{mutation.name}: {one.caught} {one.test} ({one.seconds:.0f} s)", flush=True)
            known = [rows[each.name] for each in MUTATIONS if each.name in rows]
            options.out.write_text(page(known), encoding="utf-8")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
