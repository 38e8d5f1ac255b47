from __future__ import annotations

import numpy as np

from glasshouse import Evidence, Population
from glasshouse.evaluation.run import with_public_records


def test_public_records_leave_every_array_and_keep_their_own_rows() -> None:
    population = Population(np.arange(20.0).reshape(10, 2), np.arange(10) % 2)
    random = np.random.default_rng(0)
    evidence = Evidence(
        target_loss=random.exponential(size=10),
        shadow_loss=random.exponential(size=(2, 10)),
        shadow_members=random.random((2, 10)) < 0.5,
        ids=population.ids,
        labels=population.y,
        target_logits=random.normal(size=(10, 2)),
        shadow_logits=random.normal(size=(2, 10, 2)),
        target_trace=random.exponential(size=(3, 10)),
    )
    outside = np.isin(np.arange(10), [1, 4, 8])
    cut = with_public_records(evidence, population, outside, seed=0)
    assert cut.public is not None
    assert cut.ids.tolist() == [str(n) for n in (0, 2, 3, 5, 6, 7, 9)]
    assert (cut.public.loss == evidence.target_loss[outside]).all()
    assert (cut.public.features == np.asarray(population.x)[outside]).all()
    assert (cut.public.audited == np.asarray(population.x)[~outside]).all()
    for name in ("shadow_loss", "shadow_members", "target_trace", "shadow_logits"):
        assert (getattr(cut, name) == getattr(evidence, name)[:, ~outside]).all()
    assert cut.target_logits is not None
    assert cut.target_logits.shape == (7, 2)
