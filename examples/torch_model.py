"""Audit a torch network on the digits: an overfitted one, then the same with weight decay and dropout."""

import functools

import torch

from glasshouse import TorchTrainer, audit, digits, mlp, random_subsets

data = digits()  # a tenth of the labels is wrong on purpose: a model can only memorise those
members = random_subsets(len(data.population), models=1, fraction=0.5, seed=0)[0]


def trainer(dropout: float, weight_decay: float) -> TorchTrainer:
    adam = functools.partial(torch.optim.Adam, lr=3e-3, weight_decay=weight_decay)
    return TorchTrainer(module=mlp(64, 10, hidden=(256,), dropout=dropout), optimizer=adam, epochs=40, batch_size=64)


for name, how in (("overfitted", trainer(0.0, 0.0)), ("regularised", trainer(0.5, 1e-2))):
    target = how(data.population, members, seed=1)  # in your case: the model that you already have
    result = audit(
        data.population,
        model=target,
        members=members,
        trainer=how,
        shadows=8,
        title=f"Digits, {name}",
        about=data.about,
    )
    print(f"{name}: train {result.context.train_accuracy:.3f}, test {result.context.test_accuracy:.3f}")
    print(result.table(), end="\n\n")
