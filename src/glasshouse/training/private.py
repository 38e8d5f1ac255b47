"""Train with differential privacy (DP-SGD, through Opacus), to compare a claimed ε with what attacks find."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError, needs_extra
from glasshouse.core.randomness import seed_for
from glasshouse.data import Population, select
from glasshouse.training.batches import answers_for, fitting_threads, labels_of, loss_for
from glasshouse.training.inputs import reader_for

# warnings of Opacus about choices made here on purpose: seeded noise, an input that needs no gradient, a small ε
_EXPECTED_WARNINGS = ("Secure RNG turned off", "Full backward hook is firing", "Optimal order is the")


@dataclass(frozen=True, kw_only=True)
class PrivateTrainer:
    """DP-SGD with Poisson sampling; the noise is chosen so that all epochs together spend (epsilon, delta).

    The noise follows the seed, so that an audit can be repeated. A released model needs noise that nobody can repeat.

    Args:
        module: makes an untrained module without batch normalisation (it mixes records).
        epsilon: ε to spend.
        delta: δ, below one over the number of members.
        optimizer: makes an optimizer from parameters.
        epochs: passes over the members, on average.
        batch_size: records per step, on average.
        clipping: largest norm of one record's gradient.

    Example:
        >>> from glasshouse.training import mlp
        >>> PrivateTrainer(module=mlp(64, 10), epsilon=3.0, delta=1e-5).clipping
        1.0
    """

    module: Callable[[], nn.Module]
    epsilon: float
    delta: float
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] = torch.optim.Adam
    epochs: int = 20
    batch_size: int = 128
    clipping: float = 1.0

    def __call__(self, population: Population, members: BoolArray, seed: int) -> nn.Module:
        """A trained plain module in evaluation mode, on the CPU."""
        with needs_extra("PrivateTrainer", package="opacus", extra="dp"):
            import opacus
            import opacus.validators
        with torch.random.fork_rng(), warnings.catch_warnings():
            for expected in _EXPECTED_WARNINGS:
                warnings.filterwarnings("ignore", message=expected)
            torch.manual_seed(seed_for(seed, "weights"))
            model = self.module()
            faults = opacus.validators.ModuleValidator.validate(model, strict=False)
            if faults:
                raise InputError(*[f"module: DP-SGD cannot train it: {fault}" for fault in faults])
            x = reader_for(model, population.x)(select(population.x, members))
            if not isinstance(x, Tensor):
                raise InputError("population: DP-SGD trains on one tensor, not on a dict of arrays; give one array.")
            records = TensorDataset(x, labels_of(population)[torch.from_numpy(members)])
            read, loss_of = answers_for(population, model, x), loss_for(population)
            random = torch.Generator().manual_seed(seed_for(seed, "batches"))
            private, optimizer, loader = opacus.PrivacyEngine(accountant="rdp").make_private_with_epsilon(
                module=model.train(),
                optimizer=self.optimizer(model.parameters()),
                data_loader=DataLoader(records, batch_size=self.batch_size, generator=random),
                target_epsilon=self.epsilon,
                target_delta=self.delta,
                epochs=self.epochs,
                max_grad_norm=self.clipping,
                noise_generator=torch.Generator().manual_seed(seed_for(seed, "noise")),
            )
            with fitting_threads(model, records.tensors[0], self.batch_size):
                for _ in range(self.epochs):
                    for x, y in loader:  # Poisson sampling may draw an empty batch; its step only adds noise
                        optimizer.zero_grad()
                        loss_of(read(private(x)), y).backward()
                        optimizer.step()
            plain = self.module()  # without Opacus's hooks, so that the result is an ordinary module
            plain.load_state_dict(private._module.state_dict())
        return plain.eval()

    def restore(self, population: Population, tensors: dict[str, Tensor]) -> nn.Module:
        """A trained module again, from its stored weights."""
        model = self.module()
        model.load_state_dict(tensors)
        return model.eval()
