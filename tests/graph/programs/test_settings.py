from __future__ import annotations

import pytest
import torch
from torch import nn

from glasshouse.graph.programs.trace import settings_of


class Widths(nn.Module):
    def __init__(self, setting: object) -> None:
        super().__init__()
        self.setting = setting
        self.layer = nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("one", "other"), [(0.1, 0.2), ([1, 2], [1, 3]), ({"a": 1}, {"a": 2}), (torch.relu, torch.tanh), (None, 0)]
)
def test_a_setting_of_any_kind_tells_models_apart_and_weights_do_not(one: object, other: object) -> None:
    assert settings_of(Widths(one)) == settings_of(Widths(one))
    assert settings_of(Widths(one)) != settings_of(Widths(other))


def test_other_parts_or_another_mode_tell_models_apart() -> None:
    assert settings_of(nn.Sequential(nn.ReLU())) != settings_of(nn.Sequential(nn.ELU()))
    assert settings_of(nn.Dropout(0.5)) != settings_of(nn.Dropout(0.5).eval())
