"""Audit a torch model: which of its training records can be found from outside?

Run: python audit_torch.py. It runs as it is, on made-up records; put your own where it says "yours".
"""

import numpy as np
from torch import Tensor, nn

from glasshouse import Population, TorchTrainer, audit


class Network(nn.Module):
    """Yours: the module that you train. It gives logits, [B, classes]."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 2))

    def forward(self, x: Tensor) -> Tensor:
        """Logits, [B, classes]."""
        logits: Tensor = self.layers(x)
        return logits


def main() -> None:
    """Train a target as you do, audit it, and write the report."""
    # Yours: all records, those that trained the model (members) and others like them. Without others there is no audit.
    random = np.random.default_rng(0)
    x = random.normal(size=(800, 20)).astype(np.float32)
    y = (x[:, 0] + random.normal(size=800) > 0).astype(int)
    population = Population(x, y)  # ids=... names the records in the report

    # Yours: who trained the model, as truth values [N]. Draw the members at random if you can: only then do the figures
    # show what the model leaks, and not how members differ from non-members.
    members = random.permutation(800) < 400

    # Yours: how the model was trained. Shadow models are trained in the same way; a training loop of your own is any
    # function (population, members, seed) -> model.
    trainer = TorchTrainer(module=Network, epochs=30, batch_size=64)

    # Yours: the trained model, such as Network() with its weights loaded. Here it is trained on the members.
    model = trainer(population, members, seed=1)

    result = audit(
        population,
        model=model,
        members=members,
        trainer=trainer,
        shadows=8,  # 8 are enough for a first audit; docs: "Which attack, how many shadows, how long"
        # pool="pools/torch",  # keep the shadow models, so that the next audit trains only what is missing
        # evaluation=Evaluation(claim={"epsilon": 8.0, "delta": 1e-5}),  # judge a claimed guarantee
        title="My torch model",
    )
    print(result.table())
    print(result.summary().verdict)
    print("Report:", (result.save("runs/torch", overwrite=True) / "report.html").resolve())


if __name__ == "__main__":  # worker processes import this file, and must not run it
    main()
