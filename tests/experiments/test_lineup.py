from __future__ import annotations

from glasshouse_experiments.lineup import SAMPLERS, classifiers, gbase, singles


def test_names_are_those_of_the_papers_table() -> None:
    names = set(classifiers(8) | singles(8) | gbase(8, SAMPLERS))
    assert len(names) == 14
    assert ("offline", "4", "", "G-BASE (Gibbs)") in names
    assert ("online", "8", "", "MLP (0+2-hop)") in names


def test_every_sampler_has_both_forms() -> None:
    assert [name[0] for name in gbase(8, {"Metropolis-Hastings": "metropolis"})] == ["online", "offline"]
