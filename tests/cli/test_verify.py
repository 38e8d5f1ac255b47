from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from glasshouse import Evidence, Population, audit_evidence
from glasshouse.cli import app
from glasshouse.pool import ShadowPool
from glasshouse.pool.folder import pool_faults
from glasshouse.report.run_folder import run_faults


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run and a pool."""
    place = tmp_path_factory.mktemp("whole")
    random = np.random.default_rng(0)
    members = np.tile([[True, False], [False, True]], (2, 20))
    loss = random.exponential(size=(5, 40))
    evidence = Evidence(target_loss=loss[4], shadow_loss=loss[:4], shadow_members=members)
    audit_evidence(evidence, members=members[0], attacks=["base"]).save(place / "run")
    planned(place / "pool").train()
    return place


def planned(folder: Path) -> ShadowPool:
    random = np.random.default_rng(0)
    population = Population(random.normal(size=(20, 2)), random.integers(2, size=20))
    return ShadowPool.plan(population, lambda who, members, seed: np.negative, shadows=2, folder=folder)


def verified(place: Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["verify", str(place)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


@pytest.mark.parametrize("kind", ["run", "pool"])
def test_every_file_counts_each_byte_of_it_and_no_other_file_may_be_there(
    kind: str, whole: Path, tmp_path: Path
) -> None:
    assert verified(whole / kind)[0] == 0
    for path in sorted((whole / kind).iterdir()):
        if path.name.startswith(".claims"):
            continue  # a lock, which is empty
        for harm in ("flipped", "gone"):
            copy = tmp_path / f"{path.name}-{harm}"
            shutil.copytree(whole / kind, copy)
            content = bytearray((copy / path.name).read_bytes())
            content[len(content) // 2] ^= 1
            (copy / path.name).write_bytes(content)
            if harm == "gone":
                (copy / path.name).unlink()
            if path.name in ("run.json", "pool.json") and harm == "gone":
                assert CliRunner().invoke(app, ["verify", str(copy)]).exception is not None
                continue
            code, told = verified(copy)
            assert code == 3, f"{path.name} {harm}: {told}"
            assert path.stem.split(".")[0] in told
            (copy / path.name).write_bytes(b"")
            assert verified(copy)[0] == 3
    shutil.copytree(whole / kind, tmp_path / "more")
    (tmp_path / "more" / "notes.txt").write_text("mine")
    code, told = verified(tmp_path / "more")
    assert (code, "notes.txt: is not a file of" in told) == (3, True)


def test_pages_that_are_made_again_count_with_their_new_content(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "run", tmp_path / "run")
    for command in ("report", "appendix"):
        assert CliRunner().invoke(app, [command, str(tmp_path / "run")]).exit_code == 0
        assert verified(tmp_path / "run")[0] == 0
    page = tmp_path / "run" / "appendix.md"
    page.write_text(page.read_text() + "more")
    assert verified(tmp_path / "run")[0] == 3


@pytest.mark.parametrize(("kind", "name"), [("run", "run.json"), ("pool", "pool.json")])
def test_the_list_itself_is_checked_byte_for_byte_and_the_name_of_its_checksum_too(
    kind: str, name: str, whole: Path, tmp_path: Path
) -> None:
    shutil.copytree(whole / kind, tmp_path / kind)
    path = tmp_path / kind / name
    content = path.read_bytes()
    seen = bytes(content).index(b"_sha256", content.index(f'"{kind}_sha256"'.encode()))
    for at in {*range(0, len(content), 23), *range(seen - len(kind), seen + 7)}:
        if not content[at : at + 1].isspace():  # white space says nothing
            path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            told = run_faults(tmp_path / kind) if kind == "run" else pool_faults(tmp_path / kind)[1]
            assert told, content[max(0, at - 20) : at + 20]


def test_a_page_that_the_run_does_not_list_is_foreign(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "run", tmp_path / "run")
    (tmp_path / "run" / "appendix.html").write_text("<script>alert(1)</script>")
    code, told = verified(tmp_path / "run")
    assert (code, "appendix.html: is not a file of the run" in told) == (3, True)


def test_models_that_were_exchanged_are_noticed(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "pool", tmp_path / "pool")
    for ending in (".json", ".safetensors"):
        first, second = (tmp_path / "pool" / f"model-{index:05d}{ending}" for index in (0, 1))
        kept = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(kept)
    code, told = verified(tmp_path / "pool")
    assert (code, told.count("is of another model than its name says")) == (3, 2)
    planned(tmp_path / "pool").train(progress=False)  # they are trained again
    assert [path.read_bytes() for path in sorted((tmp_path / "pool").glob("model-*"))] == [
        path.read_bytes() for path in sorted((whole / "pool").glob("model-*"))
    ]


@pytest.mark.parametrize("what", ["a pipe", "an endless device", "a folder"])
def test_what_is_no_plain_file_in_a_pool_is_named_and_not_read_for_ever(what: str, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "pool", tmp_path / "pool")
    path = tmp_path / "pool" / "model-00000.safetensors"
    path.unlink()
    if what == "a pipe":
        os.mkfifo(path)
    elif what == "a folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    ended = threading.Thread(target=lambda: told.extend([verified(tmp_path / "pool")]), daemon=True)
    told: list[tuple[int, str]] = []
    ended.start()
    ended.join(timeout=60)
    assert told, "it still reads"
    assert told[0][0] == 3
    assert "model-00000.safetensors: is " in told[0][1]


def test_what_is_neither_a_run_nor_a_pool_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["verify", str(tmp_path)])
    assert "is not the folder of a run (run.json) or of a pool (pool.json)" in str(done.exception)
