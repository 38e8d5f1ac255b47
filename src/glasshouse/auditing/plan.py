"""A plan before the training: members or canaries drawn by coins of our own, committed to, and checked by the audit."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.core.arrays import BoolArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator, seed_for
from glasshouse.data import Population, as_members
from glasshouse.data.design import Design, OwnCoins, RecordsAtRandom, UnitsAtRandom
from glasshouse.data.features import joined
from glasshouse.io.files import new_folder, write_file
from glasshouse.io.guarded import guarded, read_json
from glasshouse.training.trainer import Trainer

Kind = Literal["members", "canaries"]

_FORMAT = 1


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """Which records train a model, decided by coins of our own before the training.

    ``kind`` is ``"members"``: each unit of the population is inside by a coin; or ``"canaries"``: some records get a
    wrong label, and each of these is inside by a coin, while all others are inside.
    """

    kind: Kind
    design: str  # in words
    fingerprint: str  # of the population that was planned for
    salt: str  # of the commitment, and from which all coins come
    members: BoolArray  # [N] what the trainer trains on, canaries among them
    labels: NDArray[Any]  # [N] the label of each record in training; a canary's is wrong
    canaries: IntArray  # [n] places of the canaries; empty for a plan of members
    share: float = 0.5  # the chance of each coin

    @property
    def secret(self) -> bytes:
        """All that is committed to, as bytes: the same plan has the same ones."""
        told = {
            "format": _FORMAT,
            **{name: getattr(self, name) for name in ("kind", "design", "fingerprint", "salt", "share")},
            "members": np.flatnonzero(self.members).tolist(),
            "canaries": self.canaries.tolist(),
            "canary_labels": [str(label) for label in self.labels[self.canaries].tolist()],
        }
        return json.dumps(told, sort_keys=True, indent=1).encode()

    @property
    def commitment(self) -> str:
        """The SHA-256 of the secret, which can be published before the training."""
        return hashlib.sha256(self.secret).hexdigest()

    def audited(self, population: Population) -> tuple[Population, BoolArray]:
        """The population to audit, and its members: the canaries with their labels, or all records."""
        self.check(population)
        if self.kind == "members":
            return population, self.members
        return population.at(self.canaries, labels=self.labels[self.canaries]), self.members[self.canaries]

    def trainer(self, trainer: Trainer, population: Population) -> Trainer:
        """How shadow models are trained for the audit: beside canaries, all other records are inside too."""
        if self.kind == "members":
            return trainer
        base = np.ones(len(population), dtype=np.bool_)
        base[self.canaries] = False
        return BesideBase(trainer=trainer, base=population.at(base))

    def check(self, population: Population) -> None:
        """Refuse another population than the one that was planned for."""
        if population.fingerprint() != self.fingerprint:
            raise InputError(
                f"plan: was made for other records (fingerprint {self.fingerprint}, here {population.fingerprint()}). "
                f"Give the same data, with the same label, ids and units."
            )

    def design_of(self, within: Design | None = None) -> OwnCoins:
        """The design to declare in the audit; ``within`` is that of the plan, if it was not the default one."""
        canaries = self.kind == "canaries"
        what = f"{len(self.canaries)} canaries were drawn" if canaries else self.design
        told = f"{what} by coins of this audit's own before the training (SHA-256 {self.commitment[:16]}…)"
        within = within or UnitsAtRandom()
        return OwnCoins(plan=told, within=within, what="canary" if canaries else "unit")

    def save(self, folder: Path | str, population: Population, *, overwrite: bool = False) -> Path:
        """Write what the trainer needs, what may be published, and what must stay secret until the audit.

        ``train.csv`` has the id and the label of every record to train on, in random order; ``commitment.txt`` the hash
        to publish; ``secret.json`` the coins.
        """
        self.check(population)
        with new_folder(folder, overwrite=overwrite) as place:
            write_file(place / "train.csv", self._train_csv(population))
            write_file(place / "commitment.txt", self.commitment + "\n")
            write_file(place / "secret.json", self.secret)
        return Path(folder)

    def _train_csv(self, population: Population) -> str:
        """Rows in an order by which a canary cannot be told."""
        at = generator(seed_for(0, self.salt), "order of training").permutation(np.flatnonzero(self.members))
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["id", "label"])
        rows.writerows([population.ids[place], self.labels[place]] for place in at)
        return text.getvalue()


@dataclass(frozen=True, kw_only=True)
class BesideBase:
    """A trainer of canaries: the base records always train, the canaries as the members say."""

    trainer: Trainer
    base: Population

    def __call__(self, population: Population, members: BoolArray, seed: int) -> Any:
        """A model of the base and of the members among the canaries."""
        whole = Population(
            joined(self.base.x, population.x),
            np.concatenate([self.base.labels, population.labels]),
            classes=None if population.regression else population.classes,
            regression=population.regression,
        )
        inside = np.concatenate([np.ones(len(self.base), dtype=np.bool_), members])
        return self.trainer(whole, inside, seed)


def plan_members(
    population: Population,
    *,
    design: Design | None = None,
    share: float = 0.5,
    columns: Mapping[str, NDArray[Any]] | None = None,
    salt: str | None = None,
) -> Plan:
    """Draw which units of a population train a model.

    Args:
        population: all records.
        design: how to draw; by default units, or records without units, at random.
        share: the chance of each to be inside.
        columns: [N] by name, for a design that names one.
        salt: hexadecimal, from which all coins come; by default fresh ones that nobody can guess.

    Example:
        >>> population = Population(np.zeros((6, 1)), [0, 1] * 3, unit=list("aabbcc"))
        >>> plan = plan_members(population, salt="00" * 16)
        >>> plan.kind, len(plan.commitment)
        ('members', 64)
    """
    units = population.unit
    design = design or (RecordsAtRandom() if units is None else UnitsAtRandom())
    salt = _salt(salt)
    drawn = {"label": population.labels, **(columns or {})}
    draw = design.drawn(len(population), units, drawn)
    members = design.members(len(population), units, drawn, share=share, seed=seed_for(0, salt))
    if members.all() or not members.any():
        raise InputError("plan: all records came out on one side; plan again, or with more units.")
    return Plan(
        kind="members",
        design=draw.sentence,
        fingerprint=population.fingerprint(),
        salt=salt,
        members=members,
        labels=population.labels,
        canaries=np.empty(0, dtype=np.int64),
        share=share,
    )


def plan_canaries(
    population: Population, *, canaries: int | ArrayLike, share: float = 0.5, salt: str | None = None
) -> Plan:
    """Choose records as canaries, give each a wrong label, and toss a coin for each; or take those you crafted.

    Args:
        population: all records that would train the model; the canaries among them train with their wrong label or
            not at all.
        canaries: how many; `canaries_for` says how many a bound needs. Or [N] which records are canaries that you
            crafted, such as noise, as a mask or as ids: these keep their labels.
        share: the chance of each to be inside. Crafted canaries that are left out cost nothing but a query: with many
            of them, and a small share, as many that train show more.
        salt: hexadecimal, from which everything is drawn; by default fresh.

    Example:
        >>> population = Population(np.arange(40.0).reshape(-1, 1), np.arange(40) % 4)
        >>> plan = plan_canaries(population, canaries=20, salt="00" * 16)
        >>> canaries, members = plan.audited(population)
        >>> len(canaries), bool((canaries.labels != population.labels[plan.canaries]).all())
        (20, True)
    """
    if not 0 < share < 1:
        raise InputError(f"share: {share} is not between 0 and 1.")
    records, salt = len(population), _salt(salt)
    random = generator(seed_for(0, salt), "canaries")
    labels = np.array(population.labels)
    if np.ndim(canaries):
        chosen = np.flatnonzero(as_members(canaries, (records,), place="canaries", ids=population.ids))
    else:
        chosen = np.sort(random.permutation(records)[: max(0, int(np.asarray(canaries)))])
    most = records if np.ndim(canaries) else records // 2
    if not 2 <= len(chosen) <= most:
        raise InputError(f"plan: {len(chosen)} canaries of {records} records; use 2 to {most}.")
    if not np.ndim(canaries):
        if population.regression:
            raise InputError("plan: mislabelled canaries need classes; for a regression craft some, or plan members.")
        moved = random.integers(1, len(population.classes), size=len(chosen))  # any class but its own
        labels[chosen] = population.classes[(population.y[chosen] + moved) % len(population.classes)]
    members = np.ones(records, dtype=np.bool_)
    members[chosen] = random.random(len(chosen)) < share
    coin = "a fair coin" if share == 0.5 else f"a coin of {share:g}"
    return Plan(
        kind="canaries",
        design=f"{'crafted records' if np.ndim(canaries) else 'records with a wrong label'}, each by {coin}",
        fingerprint=population.fingerprint(),
        salt=salt,
        members=members,
        labels=labels,
        canaries=chosen,
        share=share,
    )


def read_plan(folder: Path | str, population: Population, *, commitment: str | None = None) -> Plan:
    """A plan that was saved, checked: its secret has the hash that was committed to, and it is for these records.

    Args:
        folder: that `Plan.save` wrote.
        population: the same records.
        commitment: the hash as it was published; by default the one in the folder.
    """
    place = Path(folder) / "secret.json"
    told = read_json(place, advice=" Give the folder that glasshouse plan wrote.")
    with guarded(place, what="a plan"):
        kept = commitment or place.with_name("commitment.txt").read_text(encoding="utf-8").strip()
        chosen, labels = np.array(told["canaries"], dtype=np.int64), np.array(population.labels)
        known = {str(label): label for label in (labels if population.regression else population.classes).tolist()}
        if len(chosen):
            labels[chosen] = [known[str(one)] for one in told["canary_labels"]]
        members = np.zeros(len(population), dtype=np.bool_)
        members[np.array(told["members"], dtype=np.int64)] = True
        plan = Plan(
            kind="canaries" if told["kind"] == "canaries" else "members",
            design=str(told["design"]),
            fingerprint=str(told["fingerprint"]),
            salt=str(told["salt"]),
            members=members,
            labels=labels,
            canaries=chosen,
            share=float(told["share"]),
        )
    plan.check(population)
    if hashlib.sha256(place.read_bytes()).hexdigest() != kept or plan.commitment != kept:
        raise InputError(f"{place}: does not have the hash that was committed to ({kept[:16]}…): it was changed.")
    return plan


def _salt(salt: str | None) -> str:
    """Sixteen bytes that nobody can guess, or those that are given."""
    if salt is None:
        return secrets.token_hex(16)
    try:
        known = bytes.fromhex(salt)
    except ValueError:
        known = b""
    if len(known) < 16:
        raise InputError("salt: give at least 32 hexadecimal digits, or leave it out for fresh ones.")
    return salt
