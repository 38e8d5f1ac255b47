"""Fine-tune a causal language model on the texts of the members: all weights, or adapters on one frozen base."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError
from glasshouse.core.outputs import unwrapped
from glasshouse.core.randomness import seed_for
from glasshouse.data import Population, as_members
from glasshouse.data.texts import token_arrays
from glasshouse.training.adapters import AdaptedBase, AdaptedModel, LoRA
from glasshouse.training.batches import batch_sizes, batches
from glasshouse.training.trainer import ModuleTrainer, OnDevice, seeded

_IGNORED = -100  # a padded place, which has no loss


@dataclass(frozen=True, kw_only=True)
class CausalLMTrainer(OnDevice, ModuleTrainer):
    """Fine-tunes a language model to predict every next token; same seed, same weights.

    Args:
        module: makes the model as it is before fine-tuning, such as
            ``lambda: AutoModelForCausalLM.from_pretrained("…")``; a module that is called with ``input_ids`` and
            ``attention_mask`` [B, T] and gives logits [B, T, V].
        epochs: passes over the members.
        batch_size: texts per step.
        learning_rate: of AdamW; it falls to zero over the training.
        adapters: train low-rank adapters alone; None trains all weights. Adapters of several models are trained in one
            pass, on one base that is in memory once, and a pool keeps no more than them.
        together: models in one pass, if they have adapters; on a CPU 1 takes no longer, and far less memory.
        device: where to train; the GPU where there is one.

    Example:
        >>> trainer = CausalLMTrainer(module=nn.Identity, adapters=LoRA(rank=4))
        >>> trainer.epochs, trainer.adapters
        (3, LoRA(rank=4, scale=2.0, layers='^(?!.*(lm_head|embed_out)$)'))
    """

    epochs: int = 3
    batch_size: int = 16
    learning_rate: float = 5e-4
    adapters: LoRA | None = None
    together: int = 8
    device: str | None = None

    @functools.cached_property
    def _base(self) -> AdaptedBase:
        """The frozen base, made once for all models of this trainer."""
        if self.adapters is None:
            raise InputError("adapters: this trainer trains all weights; there is no base.")
        with seeded(0):  # a base without a checkpoint is the same for all
            return AdaptedBase(self.module().to(self.place), self.adapters)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_base"}

    def __call__(self, population: Population, members: BoolArray, seed: int) -> nn.Module:
        """A trained model in evaluation mode."""
        return self.train_many(population, np.asarray(members)[None], [seed])[0]

    def train_many(self, population: Population, members: BoolArray, seeds: Sequence[int]) -> list[nn.Module]:
        """Like one call for each row of ``members`` [K, N] with its seed; adapters in one pass."""
        masks = as_members(members, (len(seeds), len(population)), place="members")
        if self.adapters is None:
            return [self._all_weights(population, who, seed) for who, seed in zip(masks, seeds, strict=True)]
        found: dict[int, nn.Module] = {}
        for count in np.unique(masks.sum(axis=1)):  # models of one pass take equally many steps
            group = np.flatnonzero(masks.sum(axis=1) == count)
            for start in range(0, len(group), self.together):
                some = group[start : start + self.together]
                made = self._adapted(population, masks[some], [seeds[index] for index in some])
                found.update(zip(some.tolist(), made, strict=True))
        return [found[index] for index in range(len(seeds))]

    def _all_weights(self, population: Population, who: BoolArray, seed: int) -> nn.Module:
        with seeded(seed):
            model = copy.deepcopy(self.module()).to(self.place)  # the user's own may be given again and again
            self._fit(model, list(model.parameters()), population, who[None], [seed])
        return model.eval()

    def _adapted(self, population: Population, masks: BoolArray, seeds: list[int]) -> list[nn.Module]:
        base = self._base
        with seeded(seeds[0]):
            pairs = base.fresh(seeds, self.place)
            weights = [one.requires_grad_() for pair in pairs.values() for one in pair]
            with base.using(pairs) as model:
                self._fit(model, weights, population, masks, seeds)
        sides = {f"{name}:{side}": one for name, pair in pairs.items() for side, one in zip("AB", pair, strict=True)}
        own = ({name: one[index].detach() for name, one in sides.items()} for index in range(len(seeds)))
        return [AdaptedModel(base, weights).eval() for weights in own]

    def _fit(
        self, model: nn.Module, weights: list[Tensor], population: Population, masks: BoolArray, seeds: list[int]
    ) -> None:
        """Minimise the mean loss of tokens; the parts of a batch belong to one model each."""
        x = tokens_of(population.x)
        optimizer = torch.optim.AdamW(weights, lr=self.learning_rate, weight_decay=0.0)
        steps = self.epochs * len(batch_sizes(int(masks[0].sum()), self.batch_size))
        rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / (steps + 1))
        shuffling = [torch.Generator().manual_seed(seed_for(seed, "batches")) for seed in seeds]
        everyone = [torch.from_numpy(np.flatnonzero(who)) for who in masks]
        model.train()
        for _ in range(self.epochs):
            epoch = [
                batches(len(own), self.batch_size, random) for own, random in zip(everyone, shuffling, strict=True)
            ]
            for chosen in zip(*epoch, strict=True):
                rows = [own[at] for own, at in zip(everyone, chosen, strict=True)]
                numbers, mask = (one.to(self.place) for one in padded(x, torch.cat(rows)))
                with torch.autocast(self.place.type, dtype=torch.bfloat16, enabled=self.place.type == "cuda"):
                    logits = unwrapped(model(input_ids=numbers, attention_mask=mask))
                wanted = numbers[:, 1:].masked_fill(mask[:, 1:] == 0, _IGNORED)
                # the mean of each model's tokens by itself, so that no other model's batch changes its steps
                parts = zip(logits[:, :-1].float().chunk(len(masks)), wanted.chunk(len(masks)), strict=True)
                loss = sum(nn.functional.cross_entropy(one.transpose(1, 2), told) for one, told in parts)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[union-attr]
                optimizer.step()
                rates.step()
        model.eval()

    def restore(self, population: Population, tensors: dict[str, Tensor]) -> nn.Module:
        """A trained model again, from its stored weights or adapters."""
        if self.adapters is None:
            return super().restore(population, tensors)
        return AdaptedModel(self._base, {name: value.to(self.place) for name, value in tensors.items()}).eval()


def tokens_of(x: Any) -> tuple[Tensor, Tensor]:
    """[N, T] token numbers and padding."""
    numbers, mask = map(torch.from_numpy, token_arrays(x))
    return numbers, mask


def padded(x: tuple[Tensor, Tensor], rows: Tensor) -> tuple[Tensor, Tensor]:
    """Some texts, cut after the longest of them."""
    numbers, mask = x[0][rows], x[1][rows]
    longest = int(mask.sum(dim=1).max())
    return numbers[:, :longest], mask[:, :longest]
