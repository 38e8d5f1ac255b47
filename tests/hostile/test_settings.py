"""Audit files from strangers: read, judged and refused before anything is made."""

from __future__ import annotations

import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from glasshouse import InputError
from glasshouse.config import read_audit_file, run_audit_file
from tests.hostile.files import RECORDS, npz

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join(['*' + old] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGED = "a: &a {k: 1}\n" + "".join(
    f"{new}: &{new} {{<<: [{','.join(['*' + old] * 9)}]}}\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
FAULTS: dict[str, tuple[str, str]] = {
    "aliases": (LAUGHS, "more than 10000 entries, aliases written out"),
    "aliases as attacks": (LAUGHS + "attacks: *i\n", "more than 10000 entries"),
    "merged aliases": (MERGED, "more than 10000 entries"),
    "an alias in itself": ("title: &a [*a]\n", "'a' is used inside itself"),
    "5000 levels": ("title: " + "[" * 5000 + "]" * 5000, "nested more than 50 levels deep"),
    "5000 levels of blocks": ("- " * 5000 + "x", "nested more than 50 levels deep"),
    "5000 digits": ("shadows: " + "1" * 5000, "a number has 5000 digits"),
    "5000 binary digits": ("shadows: 0b" + "1" * 5000, "a number has 5002 digits"),
    "a number to base 60": ("shadows: 1" + ":59" * 2000, "a number has 6001 digits"),
    "a key twice": ("shadows: 8\ntitle: a\nshadows: 2\n", "line 3: 'shadows' is given twice"),
    "a key twice inside": ("claim: {epsilon: 8, epsilon: 1}\n", "line 1: 'epsilon' is given twice"),
    "no such day": ("title: 2021-13-45\n", "is damaged, or is not YAML"),
    "infinite epsilon": ("claim: {epsilon: .inf}\n", "claim.epsilon: Input should be a finite number"),
    "no epsilon": ("claim: {epsilon: .nan}\n", "claim.epsilon: Input should be"),
    "an infinite parameter": ("attacks: [{name: rmia, gamma: .inf}]\n", "attacks\\[0\\]"),
    "a list as parameter": ("attacks: [{name: rmia, gamma: [1, 2]}]\n", "attacks\\[0\\]"),
    "a dictionary as seed": ("attacks: [{name: regressed, seed: {a: 1}}]\n", "seed: .* is not a whole number from 0"),
    "a truth as count": ("attacks: [{name: classifier, epochs: true}]\n", "epochs: True is not a whole"),
    "an attack of years": ("attacks: [{name: classifier, epochs: 100000000}]\n", "epochs: 100000000 is not a whole"),
    "an attack of terabytes": ("attacks: [{name: classifier, hidden: [1000000000]}]\n", "hidden: .* is not a list of"),
    "a part of Python": ("attacks: [{name: stacked, boosted: {a: 1}}]\n", "boosted: can only be set in Python"),
    "a long value": ("mode: " + "x" * 30_000, "mode: Input should be .*characters"),
    "a long key": ("? " + "x" * 30_000 + "\n: 1", "is not a key here"),
    "a long attack": ("attacks: [" + "x" * 30_000 + "]", "is not an attack"),
    "many faults": ("".join(f"key{number}: 1\n" for number in range(500)), "and 450 more faults"),
    "too large": ("title: " + "x" * 300_000, "is larger than 256 KiB"),
    "too many shadow models": ("shadows: 100000000\n", "shadows: Input should be less than or equal to 100000"),
    "not UTF-8": ("title: \udcff\udcfe", "is damaged, or is not YAML"),
    "a zero": ("title: a\0b", "is not YAML"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_hostile_settings_are_a_short_line_at_once(name: str, tmp_path: Path) -> None:
    text, message = FAULTS[name]
    path = tmp_path / "audit.yaml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    started = time.process_time()
    tracemalloc.start()
    with pytest.raises(InputError, match=message) as caught:
        read_audit_file(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.faults[0].startswith(str(path))
    assert max(map(len, caught.value.faults)) < 2100
    assert time.process_time() - started < 10
    assert peak < 100_000_000


def test_aliases_that_stay_small_are_read(tmp_path: Path) -> None:
    path = tmp_path / "audit.yaml"
    path.write_text("data: {name: digits}\ntrainer: {kind: mlp, hidden: &w [8, 8]}\nfprs: [0.1]\ntitle: &t x\n")
    assert read_audit_file(path).title == "x"
    path.write_text("data: &d {name: digits}\ntrainer: {kind: mlp}\ntarget: {<<: {kind: train}, fraction: 0.5}\n")
    assert read_audit_file(path).target.kind == "train"


def test_a_folder_where_the_file_should_be_and_an_overlong_name_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "audit.yaml").mkdir()
    with pytest.raises(InputError, match="is a folder; give a file"):
        read_audit_file(tmp_path / "audit.yaml")
    with pytest.raises(InputError, match="File name too long"):
        read_audit_file(tmp_path / ("x" * 5000))


MINE = """
import sys
number = 3
def fails():
    raise KeyError("no such file of mine")
def ends():
    sys.exit(3)
def gives():
    return 7
"""
WORK: dict[str, tuple[str, str]] = {
    "not callable": ("{kind: python, factory: 'mine:number'}", "mine:number is of type int; name a function"),
    "raises": ("{kind: python, factory: 'mine:fails'}", r"mine:fails failed: KeyError.*mine\.py, line 5\)"),
    "ends": ("{kind: python, factory: 'mine:ends'}", "mine:ends failed: SystemExit"),
    "gives something else": ("{kind: python, factory: 'mine:gives'}", "gave int; expected a trainer"),
    "does not parse": ("{kind: python, factory: 'broken:make'}", "broken cannot be imported: SyntaxError"),
    "fails at import": ("{kind: python, factory: 'failing:make'}", "failing cannot be imported: ZeroDivisionError"),
    "no form": ("{kind: python, factory: ':::'}", "trainer.factory: "),
    "a relative name": ("{kind: python, factory: '..mine:make'}", "cannot be imported"),
    "bad parameters": (
        "{kind: sklearn, estimator: RandomForestClassifier, parameters: {n_estimators: -1}}",
        "trainer.parameters: RandomForestClassifier refuses them",
    ),
    "parameters that fail in training": (
        "{kind: sklearn, estimator: LogisticRegression, parameters: {penalty: l1, solver: lbfgs}}",
        "LogisticRegression",
    ),
    "a parameter of a strange type": (
        "{kind: sklearn, estimator: AdaBoostClassifier, parameters: {estimator: 3}}",
        "AdaBoostClassifier",
    ),
    "a wide network": ("{kind: mlp, hidden: [100000000000]}", "trainer.hidden: training such a network takes 8.7 TiB"),
    "too many trees": (
        "{kind: sklearn, estimator: RandomForestClassifier, parameters: {n_estimators: 1000000000}}",
        "trainer.parameters: n_estimators: 1000000000 trees take at least 1.8 TiB, and the limit is 1.0 GiB",
    ),
    "too many rounds": (
        "{kind: sklearn, estimator: HistGradientBoostingClassifier, parameters: {max_iter: 1000000000}}",
        "trainer.parameters: max_iter: 1000000000 trees take",
    ),
    "too many boosted trees": (
        "{kind: xgboost, parameters: {n_estimators: 30000, num_parallel_tree: 30000}}",
        "trainer.parameters: n_estimators: 900000000 trees take|needs the package",
    ),
    "a wide perceptron": (
        "{kind: sklearn, estimator: MLPClassifier, parameters: {hidden_layer_sizes: [4, 100000000000]}}",
        "trainer.parameters: hidden_layer_sizes: training such a network takes",
    ),
    "too many epochs": ("{kind: mlp, epochs: 1000000000}", "epochs: Input should be less than or equal to 1000000"),
    "a wide image network": ("{kind: wide-resnet, width: 100000000000}", "trainer"),
}


@pytest.mark.parametrize("name", WORK)
def test_what_a_trainer_cannot_do_is_one_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer, message = WORK[name]
    npz(tmp_path / "d.npz", RECORDS)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "broken.py").write_text("def make(:\n")
    (tmp_path / "failing.py").write_text("1 / 0\n")
    (tmp_path / "audit.yaml").write_text(
        f"data: {{name: file, path: d.npz}}\ntrainer: {trainer}\nattacks: [loss]\nshadows: 2\n"
    )
    for module in ("mine", "broken", "failing"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(InputError, match=message) as caught:
        run_audit_file(read_audit_file(tmp_path / "audit.yaml"), folder=tmp_path, progress=False, trust_code=True)
    assert len(caught.value.faults) == 1


def test_a_wide_graph_network_and_too_many_models_are_refused_before_they_are_made(tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric")
    path = tmp_path / "audit.yaml"
    path.write_text("graph: {network: {hidden: 100000000000}}\n")
    with pytest.raises(InputError, match="graph.network.hidden: training such a network takes"):
        run_audit_file(read_audit_file(path), folder=tmp_path, progress=False)
    path.write_text("shadows: 90000\n")
    with pytest.raises(InputError, match="shadows: 90000 models and 2000 records take 1.5 GiB, and"):
        run_audit_file(read_audit_file(path), folder=tmp_path, progress=False)
