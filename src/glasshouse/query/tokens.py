"""The loss of every token of a text, for ``audit(…, loss=TokenLoss())``: of a language model, or of an API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.errors import InputError
from glasshouse.core.optional import is_made_by, is_module
from glasshouse.core.outputs import unwrapped
from glasshouse.data.texts import token_arrays
from glasshouse.query.losses import Batch

_UNTOLD = 12.0  # the loss of a token of which an API tells nothing
_LOGITS = {"cpu": 2**26, "cuda": 2**28}  # that are in memory at once


@dataclass(frozen=True, kw_only=True)
class TokenLoss:
    """Minus the log-probability of each token of a text but the first, given those before it.

    The model is a causal language model, called with ``input_ids`` and ``attention_mask`` [B, T]; or a function of the
    batch's ``x`` that gives the log-probabilities of the tokens, [B, T - 1] or [B, T] with anything for the first.

    Args:
        reference: a model that has not seen the texts, such as the one that was fine-tuned, for attacks without shadow
            models; it is asked in the same way.
        details: also what attacks without shadow models look at: mean and standard deviation of the log-probability
            under the model's own next-token distribution, and whether its likeliest token is the right one.
        top: how many of the likeliest tokens an API tells the log-probabilities of; None if of all. Its function gives
            -inf for a token that is not among them; of shadow models, which tell all, no more is used.

    Example:
        >>> batch = Batch({"input_ids": np.array([[1, 2]]), "attention_mask": np.array([[1, 1]])}, np.ones((1, 1)), "a")
        >>> TokenLoss()(lambda x: np.log([[0.5]]), batch)["loss"].round(3)
        array([[0.693]], dtype=float32)
    """

    reference: Any = None
    details: bool = False
    top: int | None = None

    def __post_init__(self) -> None:
        if self.top is not None and (self.top < 1 or self.details or self.reference is not None):
            raise InputError("top: give 1 or more; reference and details need all log-probabilities; leave them out.")

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report says about the resolution."""
        if self.top is None:
            return ()
        return (
            f"At each place only the log-probabilities of the {self.top} likeliest tokens are known. Any other token "
            f"counts as one of log-probability -{_UNTOLD:g}, for the target and for all shadow models. With all of "
            f"them an attack would find as much or more.",
        )

    def __call__(self, model: Any, batch: Batch) -> dict[str, NDArray[np.float32]]:
        """Losses [B, T - 1] of the tokens, NaN after the end of a text, and the details by name."""
        found = _asked(model, batch, details=self.details, top=self.top)
        found["compressed"] = np.where(np.isnan(found["loss"]), np.nan, 0).astype(np.float32)
        found["compressed"][:, :1] = batch.y  # of the whole text, at its first token
        if self.reference is not None:
            found["reference"] = _asked(self.reference, batch, details=False)["loss"]
        return found


def _asked(model: Any, batch: Batch, *, details: bool, top: int | None = None) -> dict[str, NDArray[np.float32]]:
    there = token_arrays(batch.x)[1][:, 1:] > 0
    model = model.model if is_made_by(model, "transformers.pipelines.base", "Pipeline") else model
    if is_module(model):
        found = _of_module(model, batch, there.shape, details=details, top=top)
    else:
        given = np.asarray(model(batch.x), dtype=np.float32)
        if given.shape not in (there.shape, (len(there), there.shape[1] + 1)):
            raise InputError(
                f"loss: the function answered with shape {given.shape}; expected the log-probability of each token, "
                f"{list(there.shape)}."
            )
        given = given if top is None else np.where(np.isneginf(given), -_UNTOLD, np.maximum(given, -_UNTOLD))
        if (given[:, -there.shape[1] :][there] > 0).any():
            raise InputError("loss: some log-probabilities are positive; give logarithms of probabilities.")
        if not np.isfinite(given[:, -there.shape[1] :][there]).all():
            raise InputError(
                "loss: some tokens have no log-probability; if an API tells only those of the k likeliest tokens, give "
                "TokenLoss(top=k)."
            )
        found = {"loss": -given[:, -there.shape[1] :]}
    return {name: np.where(there, values, np.nan).astype(np.float32) for name, values in found.items()}


def _of_module(
    model: Any, batch: Batch, shape: tuple[int, ...], *, details: bool, top: int | None
) -> dict[str, NDArray[np.float32]]:
    """What a module says about each token; texts of like length are asked about together."""
    import torch

    from glasshouse.training.inputs import answered
    from glasshouse.training.language import padded, tokens_of

    x = tokens_of(batch.x)
    place = next((one.device for one in model.parameters()), torch.device("cpu"))
    names = ("loss", "mean", "spread", "right") if details else ("loss",)
    found = {name: np.zeros(shape, dtype=np.float32) for name in names}
    order = x[1].sum(dim=1).argsort(stable=True)

    def asked(rows: Any) -> tuple[Any, Any]:
        numbers, mask = (one.to(place) for one in padded(x, rows))
        with torch.autocast(place.type, dtype=torch.bfloat16, enabled=place.type == "cuda"):
            return numbers, unwrapped(answered(model, numbers, lambda one: one(input_ids=numbers, attention_mask=mask)))

    with torch.inference_mode():
        width = asked(order[:1])[1].shape[-1]
        most = max(1, _LOGITS.get(place.type, 2**26) // (width * (shape[1] + 1)))
        for rows in order.split(most):
            numbers, logits = asked(rows)
            known = logits[:, :-1].float().log_softmax(dim=-1)
            told = {"loss": -known.gather(-1, numbers[:, 1:, None])[..., 0]}
            if top is not None:
                least = known.topk(min(top, width), dim=-1).values[..., -1]
                told["loss"] = told["loss"].clamp(max=_UNTOLD).where(-told["loss"] >= least, _UNTOLD)
            if details:
                share = known.exp()
                mean = (share * known).sum(dim=-1)
                told |= {"mean": mean, "spread": ((share * known**2).sum(dim=-1) - mean**2).clamp(min=0).sqrt()}
                told["right"] = (known.argmax(dim=-1) == numbers[:, 1:]).float()
            for name in names:
                found[name][rows.numpy(), : numbers.shape[1] - 1] = told[name].cpu().numpy()
    return found
