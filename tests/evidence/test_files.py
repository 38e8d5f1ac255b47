from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glasshouse import Evidence, InputError, read_evidence, write_evidence
from glasshouse.attacks import PartsBASE, WindowComparison
from glasshouse.core.threads import forget_mapped
from glasshouse.data import complementary_halves

LOGITS = np.random.default_rng(0).normal(size=(5, 4, 3))  # target and 4 shadows, 4 records, 3 classes
LABELS = np.array([0, 2, 1, 1])
MEMBERS = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]], dtype=bool)
IDS = np.array(["ann", "bob", "cyd", "dan"])
LOSS = -np.log(np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True))[:, np.arange(4), LABELS]


def save(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def test_written_evidence_comes_back_bit_for_bit(tmp_path: Path) -> None:
    evidence = Evidence(target_loss=LOSS[0], shadow_loss=LOSS[1:], shadow_members=MEMBERS, ids=IDS, labels=LABELS)
    first = write_evidence(tmp_path / "a.npz", evidence, members=MEMBERS[0])
    found = read_evidence(first)
    assert (found.evidence.shadow_loss == LOSS[1:]).all()
    assert found.evidence.ids.tolist() == IDS.tolist()
    assert found.members is not None
    assert (found.members == MEMBERS[0]).all()
    again = write_evidence(tmp_path / "b.npz", evidence, members=MEMBERS[0])
    assert first.read_bytes() == again.read_bytes()


@pytest.mark.parametrize("kind", ["loss", "logits", "probabilities"])
def test_losses_logits_and_probabilities_say_the_same(tmp_path: Path, kind: str) -> None:
    given = {"loss": LOSS, "logits": LOGITS, "probabilities": np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)}[
        kind
    ]
    path = save(
        tmp_path / "e.npz",
        **{f"target_{kind}": given[0], f"shadow_{kind}": given[1:]},
        shadow_members=MEMBERS,
        labels=LABELS,
    )
    found = read_evidence(path).evidence
    np.testing.assert_allclose(found.target_loss, LOSS[0], rtol=1e-12)
    np.testing.assert_allclose(found.shadow_loss, LOSS[1:], rtol=1e-12)
    assert (found.target_logits is None) == (kind == "loss")


def test_records_are_matched_by_id_and_not_by_position(tmp_path: Path) -> None:
    order = np.array([2, 0, 3, 1])
    path = save(
        tmp_path / "e.npz",
        target_loss=LOSS[0],
        target_ids=IDS,
        shadow_loss=LOSS[1:, order],
        shadow_members=MEMBERS[:, order],
        shadow_ids=IDS[order],
    )
    found = read_evidence(path).evidence
    assert (found.shadow_loss == LOSS[1:]).all()
    assert (found.shadow_members == MEMBERS).all()


ORDER = np.array([2, 0, 3, 1])
PROBABILITIES = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
TWO_ORDERS: dict[str, Any] = {
    "target_probabilities": PROBABILITIES[0],
    "target_ids": IDS,
    "shadow_probabilities": PROBABILITIES[1:, ORDER],
    "shadow_members": MEMBERS[:, ORDER],
    "shadow_ids": IDS[ORDER],
}


@pytest.mark.parametrize("order", [np.arange(4), ORDER, ORDER[::-1]], ids=["target's", "shadow models'", "another"])
def test_labels_and_members_are_matched_by_their_own_ids_in_any_order(tmp_path: Path, order: np.ndarray) -> None:
    more = {"labels": LABELS[order], "members": MEMBERS[0][order], "label_ids": IDS[order], "member_ids": IDS[order]}
    found = read_evidence(save(tmp_path / "e.npz", **TWO_ORDERS, **more))
    np.testing.assert_allclose(found.evidence.target_loss, LOSS[0], rtol=1e-9)
    np.testing.assert_allclose(found.evidence.shadow_loss, LOSS[1:], rtol=1e-9)
    assert found.members is not None
    assert (found.members == MEMBERS[0]).all()
    named = read_evidence(save(tmp_path / "n.npz", **TWO_ORDERS, **{**more, "members": np.array(["ann", "cyd"])}))
    assert named.members is not None
    assert named.members.tolist() == [True, False, True, False]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"labels": LABELS[ORDER]}, "labels: target_ids and shadow_ids are in different orders, and labels could be"),
        (
            {"labels": LABELS, "label_ids": IDS, "members": MEMBERS[0][ORDER]},
            "members: target_ids and shadow_ids are in different orders.* Add member_ids",
        ),
        ({"labels": LABELS, "label_ids": np.array(["ann", "bob", "cyd", "eve"])}, "label_ids: record 'dan' is missing"),
        ({"labels": LABELS, "label_ids": IDS[:3]}, "label_ids: ids have shape"),
        ({"label_ids": IDS}, "label_ids: says whose labels are where; give labels"),
        ({"labels": LABELS[:3], "label_ids": IDS}, r"labels: shape \(3,\) does not fit 4 records"),
    ],
)
def test_labels_and_members_of_an_unknown_order_are_refused(tmp_path: Path, more: dict[str, Any], message: str) -> None:
    """Where the target's records are in another order than the shadow models', they could be in either."""
    with pytest.raises(InputError, match=message):
        read_evidence(save(tmp_path / "e.npz", **TWO_ORDERS, **more))


def test_one_order_given_twice_needs_no_ids_of_the_labels(tmp_path: Path) -> None:
    same = {**TWO_ORDERS, "shadow_probabilities": PROBABILITIES[1:], "shadow_members": MEMBERS, "shadow_ids": IDS}
    found = read_evidence(save(tmp_path / "e.npz", **same, labels=LABELS, members=MEMBERS[0]))
    np.testing.assert_allclose(found.evidence.target_loss, LOSS[0], rtol=1e-9)


def test_log_likelihoods_given_as_losses_are_refused_and_rounding_is_not(tmp_path: Path) -> None:
    """Votes of a forest: exact zeros show a step, by which negative numbers were clipped to a loss of nearly 0."""
    votes = np.random.default_rng(0).integers(0, 21, size=(5, 300)) / 20
    loss = -np.log(np.clip(votes, 1e-15, 1.0))
    members = np.random.default_rng(1).random((4, 300)) < 0.5
    common: dict[str, Any] = {"shadow_members": members, "members": members[0]}
    with pytest.raises(InputError, match=r"target_loss: \d+ of 300 losses are negative.* negate them \(loss = -log-li"):
        read_evidence(save(tmp_path / "e.npz", target_loss=-loss[0], shadow_loss=-loss[1:], **common))
    with pytest.raises(
        InputError, match=r"shadow_loss: \d+ of 1200 losses are negative, first at record '\d+', shadow"
    ):
        read_evidence(save(tmp_path / "e.npz", target_loss=loss[0], shadow_loss=-loss[1:], **common))
    rounded = np.where(loss == 0, -1e-7, loss)
    found = read_evidence(save(tmp_path / "r.npz", target_loss=rounded[0], shadow_loss=rounded[1:], **common))
    whole = read_evidence(save(tmp_path / "w.npz", target_loss=loss[0], shadow_loss=loss[1:], **common))
    np.testing.assert_array_equal(found.evidence.target_loss, whole.evidence.target_loss)


def test_one_logit_and_one_probability_a_record_mean_two_classes(tmp_path: Path) -> None:
    z = LOGITS[..., 0]
    labels = np.array([0, 1, 1, 0])
    for name, given in (("logits", z), ("logits", z[..., None]), ("probabilities", 1 / (1 + np.exp(-z)))):
        path = save(
            tmp_path / "e.npz",
            **{f"target_{name}": given[0], f"shadow_{name}": given[1:]},
            shadow_members=MEMBERS,
            labels=labels,
        )
        expected = np.logaddexp(0, np.where(labels == 1, -z[0], z[0]))
        np.testing.assert_allclose(read_evidence(path).evidence.target_loss, expected, rtol=1e-9)


def tidy(**changed: Any) -> list[dict[str, Any]]:
    """One row for each model and record, the shadow models' in another order."""
    rows = []
    for model, name in enumerate(["target", "s0", "s1", "s2", "s3"]):
        for record in range(4) if model == 0 else (3, 1, 0, 2):
            member = "" if model == 0 else int(MEMBERS[model - 1, record])
            row = {"model": name, "id": IDS[record], "member": member, "label": LABELS[record]}
            row |= {f"logit_{c}": repr(float(LOGITS[model, record, c])) for c in range(3)}
            rows.append(row)
    rows[-1] |= changed
    return rows


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    text = io.StringIO()
    text.write(",".join(rows[0]) + "\n")
    text.writelines(",".join(str(value) for value in row.values()) + "\n" for row in rows)
    path.write_text(text.getvalue())
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tables_with_a_row_for_each_model_and_record(tmp_path: Path, ending: str) -> None:
    path = write_csv(tmp_path / "e.csv", tidy())
    if ending == "parquet":
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        frame = pandas.read_csv(path)
        path = tmp_path / "e.parquet"
        frame.to_parquet(path)
    found = read_evidence(path)
    np.testing.assert_allclose(found.evidence.shadow_loss, LOSS[1:], rtol=1e-12)
    assert (found.evidence.shadow_members == MEMBERS).all()
    assert found.members is None


def test_a_table_of_losses_with_names_for_labels(tmp_path: Path) -> None:
    rows = [
        {"model": m, "id": i, "member": k, "label": "cat", "loss": loss}
        for m, i, k, loss in [
            ("target", "a", 1, 0.5),
            ("target", "b", 0, 0.25),
            ("x", "b", "true", 1),
            ("x", "a", "no", 2),
        ]
    ]
    found = read_evidence(write_csv(tmp_path / "e.csv", rows))
    assert found.evidence.shadow_loss.tolist() == [[2.0, 1.0]]
    assert found.members is not None
    assert found.members.tolist() == [True, False]
    assert found.evidence.labels is None


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"id": "zoe"}, "record 'cyd' is not in both"),
        ({"id": "ann"}, "model 's3' has a record twice"),
        ({"member": "maybe"}, "member: 'maybe' is neither 1 nor 0"),
        ({"member": ""}, "member: empty for record 'cyd' of a shadow model"),
        ({"logit_1": "high"}, "logit_1: 'high' is not a number"),
        ({"logit_1": "nan"}, "shadow_logits: shadow model 3: NaN or infinite for 1 of 4 records: 'cyd'"),
        ({"extra": 1}, "fields, but the header has"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_by_place(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    path = write_csv(tmp_path / "e.csv", tidy(**changed))
    with pytest.raises(InputError, match=message) as caught:
        read_evidence(path)
    assert all(str(path) in fault for fault in caught.value.faults)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"shadow_loss": LOSS[1:], "shadow_members": MEMBERS}, "target_loss: missing"),
        ({"target_loss": LOSS[0], "shadow_members": MEMBERS}, "shadow_loss: missing"),
        ({"target_loss": LOSS[0], "shadow_loss": LOSS[1:]}, "shadow_members: missing"),
        ({"target_loss": LOSS[0], "shadow_loss": LOSS[1:, :3], "shadow_members": MEMBERS}, "does not fit target_loss"),
        ({"target_logits": LOGITS[0], "shadow_logits": LOGITS[1:], "shadow_members": MEMBERS}, "labels: missing"),
        (
            {"target_logits": LOGITS[0], "shadow_logits": LOGITS[1:], "shadow_members": MEMBERS, "labels": LABELS + 1},
            "record '1' has the label 3, but the classes are 0 to 2",
        ),
        (
            {
                "target_logits": LOGITS[0],
                "shadow_logits": LOGITS[1:],
                "shadow_members": MEMBERS,
                "labels": LABELS + 0.5,
            },
            "labels: give whole numbers",
        ),
        (
            {
                "target_probabilities": LOGITS[0],
                "shadow_probabilities": LOGITS[1:],
                "shadow_members": MEMBERS,
                "labels": LABELS,
            },
            "does not hold probabilities that sum to 1",
        ),
        (
            {"target_loss": LOSS[0], "shadow_loss": LOSS[1:], "shadow_members": MEMBERS, "target_ids": IDS},
            "give both",
        ),
        (
            {
                "target_loss": LOSS[0],
                "shadow_loss": LOSS[1:],
                "shadow_members": MEMBERS,
                "target_ids": IDS,
                "shadow_ids": np.array(["ann", "bob", "cyd", "eve"]),
            },
            "shadow_ids: record 'dan' is missing",
        ),
        ({"target_lost": LOSS[0]}, "'target_lost' is not a known array"),
    ],
)
def test_an_archive_that_does_not_fit_is_refused_by_field(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    path = save(tmp_path / "e.npz", **arrays)
    with pytest.raises(InputError, match=message) as caught:
        read_evidence(path)
    assert all(fault.startswith(str(path)) for fault in caught.value.faults)


class Bomb:
    def __reduce__(self) -> Any:
        return (Path.touch, (Path("/tmp/glasshouse-was-here"),))


def test_pickles_are_refused_in_every_dress(tmp_path: Path) -> None:
    content = pickle.dumps(Bomb())
    for name in ("e.pkl", "e.pt", "e.npz", "e.csv", "e.joblib"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match="pickle"):
            read_evidence(tmp_path / name)
    np.savez(tmp_path / "object.npz", target_loss=np.array([Bomb()], dtype=object))
    with pytest.raises(InputError, match="holds pickled objects, which are refused"):
        read_evidence(tmp_path / "object.npz")
    assert not Path("/tmp/glasshouse-was-here").exists()


def test_files_that_are_missing_damaged_or_of_another_kind_are_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        read_evidence(tmp_path / "none.npz")
    whole = save(tmp_path / "e.npz", target_loss=LOSS[0], shadow_loss=LOSS[1:], shadow_members=MEMBERS).read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="is not a complete archive"):
        read_evidence(tmp_path / "half.npz")
    (tmp_path / "e.xlsx").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"read from \.npz, \.csv or \.parquet"):
        read_evidence(tmp_path / "e.xlsx")
    (tmp_path / "empty.csv").write_text("model,id,member,loss\n")
    with pytest.raises(InputError, match="the table has no rows"):
        read_evidence(tmp_path / "empty.csv")
    (tmp_path / "half.parquet").write_bytes(b"PAR1 and nothing else")
    pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match="complete parquet file"):
        read_evidence(tmp_path / "half.parquet")
    with pytest.raises(InputError, match="written as .npz"):
        write_evidence(tmp_path / "e.pkl", read_evidence(tmp_path / "e.npz").evidence)


def parts(**changed: Any) -> dict[str, Any]:
    """Two texts of two tokens and one, a target and two shadow models."""
    given: dict[str, Any] = {
        "target_parts": np.array([0.1, 0.2, 2.0], np.float32),
        "shadow_parts": np.array([[0.5, 0.9, 1.0], [0.7, 0.8, 1.2]], np.float32),
        "part_offsets": np.array([0, 2, 3]),
        "parts_reference": np.array([[0.6, 0.8, 1.1]], np.float32),
        "shadow_members": np.array([[1, 0], [0, 1]]),
        "ids": np.array(["a", "b"]),
    }
    return {name: value for name, value in (given | changed).items() if value is not None}


def test_saved_losses_of_tokens_are_all_that_an_attack_needs(tmp_path: Path) -> None:
    np.savez(tmp_path / "tokens.npz", **parts())
    evidence = read_evidence(tmp_path / "tokens.npz").evidence
    assert evidence.target_loss == pytest.approx([0.3, 2.0])
    assert evidence.shadow_loss == pytest.approx(np.array([[1.4, 1.0], [1.5, 1.2]]))
    shadow = parts()["shadow_parts"]
    first, second, third = -parts()["target_parts"] - np.log(np.exp(-shadow).mean(axis=0))
    assert PartsBASE().score(evidence) == pytest.approx([first + second, third], abs=1e-5)
    wbc = WindowComparison(widths=(1,))
    assert wbc.score(evidence).tolist() == [1.0, 0.0]
    again = read_evidence(write_evidence(tmp_path / "again.npz", evidence)).evidence
    assert again.parts is not None
    assert evidence.parts is not None
    for name, values in evidence.parts.arrays().items():
        assert np.array_equal(again.parts.arrays()[name], values)
    assert np.array_equal(again.target_loss, evidence.target_loss)
    assert np.array_equal(again.parts.details["reference"], parts()["parts_reference"])
    # of densities the smallest is subtracted from every part and from every sum
    np.savez(tmp_path / "shifted.npz", **parts(target_loss=np.array([2.3, 3.0]), shadow_loss=[[3.4, 2.0], [3.5, 2.2]]))
    assert read_evidence(tmp_path / "shifted.npz").evidence.target_loss == pytest.approx([2.3, 3.0])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"part_offsets": None}, "part_offsets: missing beside target_parts"),
        ({"part_offsets": np.array([0, 2])}, "part_offsets: give .* rising positions"),
        ({"part_offsets": np.array([0.0, 2.0, 3.0])}, "part_offsets, target_parts: give whole numbers"),
        (
            {"part_offsets": np.arange(4), "target_loss": np.ones(2), "shadow_loss": np.ones((2, 2))},
            "part_offsets: has 4 numbers; 2 records need",
        ),
        ({"target_parts": np.array([0.1, np.nan, 2.0])}, "target_parts: some are not finite"),
        ({"shadow_parts": -parts()["shadow_parts"]}, "shadow_parts: some are negative"),
        ({"parts_reference": np.ones((2, 3))}, r"parts_reference: shape \(2, 3\)"),
        (
            {"target_loss": np.array([0.3, 2.1]), "shadow_loss": [[1.4, 1.0], [1.5, 1.2]]},
            "first 'b', their sums do not",
        ),
        ({"ids": None, "target_ids": ["a", "b"], "shadow_ids": ["b", "a"]}, "shadow_ids: with parts all arrays"),
    ],
)
def test_losses_of_tokens_that_do_not_fit_are_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "tokens.npz", **parts(**changed))
    with pytest.raises(InputError, match=message) as error:
        read_evidence(tmp_path / "tokens.npz")
    assert "tokens.npz" in str(error.value)


def test_losses_of_a_large_file_are_in_memory_only_while_they_are_looked_at(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    given = Evidence(
        target_loss=random.exponential(size=20_000),
        shadow_loss=random.exponential(size=(8, 20_000)),
        shadow_members=complementary_halves(20_000, models=8, seed=0),
    )
    path = write_evidence(tmp_path / "large.npz", given)
    found = read_evidence(path).evidence

    def held() -> int:
        """KiB of the file that are in memory."""
        areas = Path("/proc/self/smaps").read_text().split(str(path))[1:]
        return sum(int(area.split("Rss:")[1].split()[0]) for area in areas)

    assert (found.shadow_loss == given.shadow_loss).all()
    assert held() > 1000
    forget_mapped()
    assert held() == 0
    some = random.permutation(20_000)[:5000]
    np.testing.assert_array_equal(found.of_records(some).shadow_loss, given.shadow_loss[:, some])
    np.testing.assert_array_equal(found.of_records(some).shadow_members, given.shadow_members[:, some])
    assert held() < 200
    with pytest.raises(ValueError, match="read-only"):  # what is written would be forgotten
        found.shadow_loss[0] = 0.0
