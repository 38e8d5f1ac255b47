"""A plan before the training: drawn, committed to, trained, and checked by the audit."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from glasshouse import Evaluation, Population, audit
from glasshouse.auditing.plan import plan_canaries, plan_members, read_plan
from glasshouse.core.errors import InputError
from glasshouse.data.design import BySite
from glasshouse.evaluation.declared import Coins, DeclaredDraw, with_own_coins

SALT = "0123456789abcdef" * 2


def people(count: int = 400) -> Population:
    random = np.random.default_rng(0)
    x = random.normal(size=(count, 4))
    return Population(x, np.where(x[:, 0] > 0, "yes", "no"), ids=[f"r{one}" for one in range(count)])


def test_the_same_salt_gives_the_same_coins_and_a_fresh_one_others() -> None:
    one, same, other = (plan_canaries(people(), canaries=100, salt=salt) for salt in (SALT, SALT, None))
    assert one.commitment == same.commitment != other.commitment
    assert not np.array_equal(one.canaries, other.canaries)


def test_canaries_have_wrong_labels_and_half_of_them_train() -> None:
    population = people()
    plan = plan_canaries(population, canaries=200, salt=SALT)
    canaries, members = plan.audited(population)
    assert (canaries.labels != population.labels[plan.canaries]).all()
    assert 75 < members.sum() < 125
    others = np.delete(np.arange(400), plan.canaries)
    assert plan.members[others].all()
    np.testing.assert_array_equal(plan.labels[others], population.labels[others])


@pytest.mark.parametrize("regression", [False, True])
def test_canaries_that_were_crafted_keep_their_labels(tmp_path: Path, regression: bool) -> None:
    x = np.random.default_rng(0).normal(size=(60, 2))
    population = Population(x, x[:, 0] if regression else np.arange(60) % 3, regression=regression)
    plan = plan_canaries(population, canaries=np.arange(60) >= 40, salt=SALT)
    plan.save(tmp_path / "plan", population)
    canaries, members = read_plan(tmp_path / "plan", population).audited(population)
    np.testing.assert_array_equal(canaries.labels, population.labels[40:])
    assert 3 < members.sum() < 17
    assert "crafted" in plan.design


def test_planned_trained_and_audited_end_to_end(tmp_path: Path) -> None:
    population = people()
    plan = plan_canaries(population, canaries=160, salt=SALT)
    plan.save(tmp_path / "plan", population)
    with (tmp_path / "plan" / "train.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    at = np.array([int(row["id"][1:]) for row in rows])
    assert len(at) == plan.members.sum()
    model = RandomForestClassifier(20, random_state=0).fit(population.x[at], [row["label"] for row in rows])
    kept = read_plan(tmp_path / "plan", population, commitment=plan.commitment)
    canaries, members = kept.audited(population)
    evaluation = Evaluation(design=kept.design_of())
    result = audit(canaries, model=model, members=members, shadows=0, attacks=["loss"], evaluation=evaluation)
    declared = result.declared
    assert declared is not None
    assert plan.commitment[:16] in declared.sentence
    assert declared.epsilon > result.privacy.epsilon > 0  # type: ignore[union-attr]
    assert "coins of the audit decided" in result.privacy.sentence()  # type: ignore[union-attr]
    assert result.summary().conclusion.leak


def test_shadow_models_of_canaries_train_beside_all_other_records() -> None:
    population = people()
    plan = plan_canaries(population, canaries=100, salt=SALT)
    canaries, members = plan.audited(population)
    seen: list[int] = []

    def trainer(population: Population, members: np.ndarray, seed: int) -> object:
        seen.append(int(members.sum()))
        return RandomForestClassifier(2, random_state=seed).fit(population.x[members], population.y[members])

    plan.trainer(trainer, population)(canaries, members, 0)
    assert seen == [plan.members.sum()]


def test_members_are_drawn_by_the_design_and_by_unit() -> None:
    population = Population(np.zeros((90, 1)), np.arange(90) % 2, unit=np.arange(90) // 3)
    sites = np.arange(90) // 9
    plan = plan_members(population, design=BySite(by=sites), salt=SALT)
    for site in range(10):
        assert len(set(plan.members[sites == site].tolist())) == 1
    assert plan_members(population, salt=SALT).design == "persons were drawn at random"


def test_few_of_many_crafted_canaries_train_and_the_plan_says_so(tmp_path: Path) -> None:
    population = people()
    plan = plan_canaries(population, canaries=np.arange(400) >= 50, share=0.1, salt=SALT)
    assert 15 < plan.members[50:].sum() < 60
    assert plan.members[:50].all()
    plan.save(tmp_path / "plan", population)
    assert read_plan(tmp_path / "plan", population).share == 0.1
    canaries, members = plan.audited(population)
    scores = {"x": canaries.x[:, 0] + 3 * members}
    declared = DeclaredDraw(sentence=plan.design, random=True, coins="canary")
    coins = Coins.of(plan.design_of().drawn(350, None, {}), scores, members, practice={}, unit="record")
    found = with_own_coins(declared, coins, delta=1e-5)
    assert 0 < found.sure < found.epsilon
    assert "each by a coin of 0.1" in found.evidence()
    assert f"ε ≥ {found.sure:.2f} with a confidence of 99.99 %" in found.evidence()


@pytest.mark.parametrize("change", [('"salt": "0', '"salt": "1'), ('"members": [', '"members": [399, ')])
def test_a_plan_that_was_changed_is_refused(tmp_path: Path, change: tuple[str, str]) -> None:
    population = people()
    plan = plan_canaries(population, canaries=400 // 2, salt=SALT)
    plan.save(tmp_path / "plan", population)
    place = tmp_path / "plan" / "secret.json"
    text = place.read_text(encoding="utf-8").replace(*change)
    place.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"it was changed|give different places"):
        read_plan(tmp_path / "plan", population)


def test_a_plan_for_other_records_and_a_published_hash_of_another_plan_are_refused(tmp_path: Path) -> None:
    population = people()
    plan_canaries(population, canaries=100, salt=SALT).save(tmp_path / "plan", population)
    with pytest.raises(InputError, match="made for other records"):
        read_plan(tmp_path / "plan", Population(population.x + 1, population.labels, ids=population.ids))
    with pytest.raises(InputError, match="does not have the hash"):
        read_plan(tmp_path / "plan", population, commitment="0" * 64)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"canaries": 300}, "use 2 to 200"),
        ({"canaries": 10, "salt": "abc"}, "at least 32 hexadecimal digits"),
        ({"canaries": 10, "share": 1.0}, "not between 0 and 1"),
    ],
)
def test_what_cannot_be_planned_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        plan_canaries(people(), **options)  # type: ignore[arg-type]
