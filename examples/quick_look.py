"""A quick look without shadow models: weak attacks at once, and an estimate of what eight shadow models would find."""

from glasshouse import Attacker, LossTrace, TorchTrainer, audit, digits, mlp, random_subsets

data = digits()
members = random_subsets(len(data.population), models=1, fraction=0.5, seed=0)[0]
trainer = TorchTrainer(module=mlp(64, 10), epochs=30, batch_size=64)

trace = LossTrace(data.population)  # only if you can record losses while your model is trained
target = trainer(data.population, members, seed=1, after_epoch=trace.record)

result = audit(data.population, model=target, members=members, shadows=0, attacker=Attacker(public=0.4, trace=trace))
print(result.table())
print(*result.summary().notes[:2], sep="\n")  # a lower bound, and the estimate
