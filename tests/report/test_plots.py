from __future__ import annotations

import numpy as np

from glasshouse.evaluation import roc
from glasshouse.report.plots import roc_svg


def test_the_same_curves_give_the_same_picture() -> None:
    random = np.random.default_rng(0)
    members = np.arange(300) < 150
    curves = {name: roc(random.normal(size=300) + members, members) for name in ("base", "<lira>")}
    first, second = roc_svg(curves), roc_svg(curves)
    assert first == second
    assert "&lt;lira&gt;" in first
    assert "<lira>" not in first
    assert "<script" not in first
