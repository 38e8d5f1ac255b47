from __future__ import annotations

import pytest
import torch
from torch import nn

from glasshouse.graph.programs.trace import same_settings


class Widths(nn.Module):
    def __init__(self, setting: object) -> None:
        super().__init__()
        self.setting = setting
        self.layer = nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("one", "other"), [(0.1, 0.2), ([1, 2], [1, 3]), ({"a": 1}, {"a": 2}), (torch.relu, torch.tanh), (None, 0)]
)
def test_a_setting_of_any_kind_tells_models_apart_and_weights_do_not(one: object, other: object) -> None:
    assert same_settings([Widths(one), Widths(one)])
    assert not same_settings([Widths(one), Widths(other)])


def test_other_parts_or_another_mode_tell_models_apart() -> None:
    assert not same_settings([nn.Sequential(nn.ReLU()), nn.Sequential(nn.ELU())])
    assert not same_settings([nn.Dropout(0.5), nn.Dropout(0.5).eval()])
