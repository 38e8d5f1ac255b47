from __future__ import annotations

from glasshouse.experiments.lineup import classifiers, gbase, samplers_of, singles
from glasshouse.experiments.settings import SETTINGS


def test_names_are_those_of_the_papers_table() -> None:
    names = set(classifiers(8) | singles(8) | gbase(8, samplers_of(SETTINGS.find("cora"))))
    assert len(names) == 14
    assert ("offline", "4", "", "G-BASE (Gibbs)") in names
    assert ("online", "8", "", "MLP (0+2-hop)") in names


def test_what_does_not_exist_is_left_out() -> None:
    assert list(gbase(8, {"Metropolis-Hastings": "metropolis"})) == [("online", "8", "", "Metropolis-Hastings")]
    assert "G-BASE (Gibbs)" not in samplers_of(SETTINGS.find("github"))
