from __future__ import annotations

import threading

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from glasshouse.training.batches import ModuleBatch, optimizer_obstacle, split, spread

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@given(
    sizes=st.lists(st.integers(1, 3), max_size=12),
    each=st.integers(0, 2**30),
    together=st.integers(1, 5),
    gpu=st.booleans(),
)
def test_models_of_one_size_are_trained_together_as_far_as_memory_goes(
    sizes: list[int], each: int, together: int, gpu: bool
) -> None:
    stacks = split(sizes, bytes_each=each, device=GPU if gpu else CPU, together=together)
    assert sorted(index for stack in stacks for index in stack) == list(range(len(sizes)))
    for stack in stacks:
        assert len({sizes[index] for index in stack}) == 1
        assert len(stack) == 1 or len(stack) * each <= 2**30
        assert gpu or len(stack) <= together


@pytest.mark.parametrize("device", [CPU, GPU])
def test_results_come_back_in_the_models_order_whoever_worked(device: torch.device) -> None:
    before = torch.get_num_threads()
    found = spread(lambda stack: [10 * index for index in stack], [[3, 0], [4], [1, 2]], device=device, workers=2)
    assert found == [0, 10, 20, 30, 40]
    assert torch.get_num_threads() == before


def test_on_a_cpu_operations_of_a_stack_take_one_thread() -> None:
    counts: set[int] = set()
    threads: set[int] = set()

    def work(stack: list[int]) -> list[int]:
        counts.add(torch.get_num_threads())
        threads.add(threading.get_ident())
        return stack

    spread(work, [[0], [1]], device=CPU, workers=2)
    assert counts == {1}
    assert threading.get_ident() not in threads


def test_weights_go_into_one_tensor_and_come_back_with_buffers() -> None:
    models = [nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).train() for _ in range(3)]
    wanted = [{name: value.clone() + 1 for name, value in model.state_dict().items()} for model in models]
    batch = ModuleBatch(models)
    assert all(parameter.is_leaf for parameter in batch.parameters.values())
    with torch.no_grad():
        for tensor in (*batch.parameters.values(), *batch.buffers.values()):
            tensor += 1
    for model, expected in zip(batch.unbatch(), wanted, strict=True):
        assert not model.training
        for name, value in model.state_dict().items():
            torch.testing.assert_close(value, expected[name])


def test_an_optimizer_that_may_mix_models_is_an_obstacle() -> None:
    class Clipped(torch.optim.SGD):
        pass

    def hooked(parameters: object) -> torch.optim.Optimizer:
        optimizer = torch.optim.SGD(parameters, lr=0.1)  # type: ignore[arg-type]
        optimizer.register_step_pre_hook(lambda *_: None)
        return optimizer

    said = {}
    for make in (torch.optim.AdamW, torch.optim.LBFGS, Clipped, hooked):
        said[make.__name__] = optimizer_obstacle(make, nn.Linear(1, 1).parameters())
    assert said["AdamW"] is None
    assert "mixes entries" in str(said["LBFGS"])
    assert "is a subclass" in str(said["Clipped"])
    assert "has hooks" in str(said["hooked"])
