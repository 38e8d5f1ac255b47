"""What a language model knows by heart: perplexities, surprising tokens, and texts that it continues word for word."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from glasshouse.attacks.base import expected_confidence
from glasshouse.core.arrays import BoolArray, FloatArray, Positions
from glasshouse.evidence import Evidence, Mode, PartLosses

_BEGINNING = 4  # a text's beginning is one of so many parts of its tokens
_FEW = 2  # with fewer shadow models there is nothing that a token could be compared with
_OF_TEXTS = "compressed"  # what `TokenLoss` alone tells


@dataclass(frozen=True, kw_only=True)
class Extraction:
    """How much of a text is continued word for word from its first quarter, if the likeliest token is always taken."""

    by_target: float  # a share of the tokens after the beginning
    by_others: float | None  # the mean of shadow models that never saw it; None without such a model


@dataclass(frozen=True, kw_only=True)
class ExposedText:
    """One of the most exposed texts, without its words unless its owner wants them shown."""

    id: str
    tokens: int  # how many tokens are predicted: all but the first
    surprising: tuple[int, ...]  # which of them only models that were trained on the text know, from 0
    extraction: Extraction | None
    words: tuple[str, ...] = ()  # all tokens as text, the first one too; empty: not shown

    def pieces(self) -> list[tuple[str, bool]]:
        """Each token that is predicted, and whether it surprises; in place of words that are not shown a sign."""
        told = set(self.surprising)
        rest = self.words[1:] if self.words else ["■" if at in told else "□" for at in range(self.tokens)]
        first = [(self.words[0], False)] if self.words else []
        return first + [(word, at in told) for at, word in enumerate(rest)]


@dataclass(frozen=True, kw_only=True)
class TextLeak:
    """What a report says about the texts of a language model; shares are means over members."""

    perplexities: tuple[float, float] | None  # of members and of non-members; None if members are not known
    extraction: Extraction | None = None
    whole: tuple[int, float | None] | None = None  # members continued to their end: by the target, by other models
    members: int = 0
    texts: tuple[ExposedText, ...] = field(default=())

    def sentences(self) -> Iterator[str]:
        """Perplexities and extraction in plain words."""
        if self.perplexities is not None:
            inside, outside = self.perplexities
            yield (
                f"Perplexity: at each token the target is as unsure as among {inside:.1f} equally likely ones in "
                f"texts of members, and among {outside:.1f} in those of non-members."
            )
        if self.extraction is not None and self.whole is not None:
            told = (
                f"Given the first quarter of a member's text, the target continues {_share(self.extraction.by_target)} "
                f"of the rest word for word, and {self.whole[0]} of {self.members} texts to their end"
            )
            if self.extraction.by_others is not None and self.whole[1] is not None:
                told += (
                    f"; shadow models that never saw a text {_share(self.extraction.by_others)}, and "
                    f"{self.whole[1]:.1f} texts"
                )
            yield f"{told}."


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def text_leak(
    evidence: Evidence,
    *,
    members: BoolArray | None,
    listed: Positions,
    mode: Mode = "online",
    words: Sequence[Sequence[str]] | None = None,
) -> TextLeak | None:
    """What there is to say about texts, those at the positions ``listed`` one by one; None if records are no texts.

    Args:
        evidence: with the losses of tokens, as `TokenLoss` gives them.
        members: [N] of the target; None if not known.
        listed: [L] positions of the most exposed texts.
        mode: which shadow models tell what a token's loss should be: all, or those that never saw the text.
        words: [N] the tokens of every text, to be shown.
    """
    parts = evidence.parts
    if parts is None or _OF_TEXTS not in parts.details:
        return None
    sizes = np.diff(parts.offsets)
    found = _extractions(parts, evidence.shadow_members)
    texts = tuple(
        ExposedText(
            id=str(evidence.ids[at]),
            tokens=int(sizes[at]),
            surprising=_surprising(evidence.of_records(np.array([at])), mode),
            extraction=None if found is None else _extraction(found, at),
            words=() if words is None else tuple(words[at])[: sizes[at] + 1],
        )
        for at in listed.tolist()
    )
    if members is None:
        return TextLeak(perplexities=None, texts=texts)
    token = np.repeat(members, sizes)
    inside, outside = (float(np.exp(parts.target[who].mean(dtype=np.float64))) for who in (token, ~token))
    leak = TextLeak(perplexities=(inside, outside), members=int(members.sum()), texts=texts)
    if found is None:
        return leak
    target, others = (one[members] for one in found)
    known = others[~np.isnan(others).any(axis=1)]
    by_others = [float(one) for one in known.mean(axis=0)] if len(known) else [None, None]
    whole = None if by_others[1] is None else by_others[1] * len(target)
    extraction = Extraction(by_target=float(target[:, 0].mean()), by_others=by_others[0])
    return replace(leak, extraction=extraction, whole=(int(target[:, 1].sum()), whole))


def _surprising(text: Evidence, mode: Mode) -> tuple[int, ...]:
    """The fewest tokens of one text that have half of what speaks for its membership."""
    if text.models < _FEW or (mode == "offline" and text.shadow_members.all()):
        return ()
    tokens = text.of_parts()
    ratios = np.maximum(-tokens.target_loss - expected_confidence(tokens, mode), 0.0)
    order = np.argsort(-ratios, kind="stable")
    summed = np.cumsum(ratios[order])
    count = int(np.searchsorted(summed, summed[-1] / 2)) + 1 if summed[-1] > 0 else 0
    return tuple(sorted(order[:count].tolist()))


def _extractions(parts: PartLosses, shadow_members: BoolArray) -> tuple[FloatArray, FloatArray] | None:
    """[N, 2] how much is continued and whether to the end, by the target, and as a mean by models that never saw it.

    The likeliest continuation is the text itself as long as every token is the likeliest one given those before it, so
    nothing has to be generated.
    """
    right = parts.details.get("right")
    if right is None or len(right) != 1 + len(shadow_members):
        return None
    every = np.array([_continued(one, parts) for one in right])  # [1 + K, N, 2]
    outside = ~shadow_members
    with np.errstate(invalid="ignore"):
        others = (every[1:] * outside[..., None]).sum(axis=0) / outside.sum(axis=0)[:, None]
    return every[0], others


def _continued(right: FloatArray, parts: PartLosses) -> FloatArray:
    found = []
    for start, stop in itertools.pairwise(parts.offsets.tolist()):
        rest = right[start:stop][(stop - start) // _BEGINNING :]
        wrong = np.flatnonzero(rest == 0)
        length = int(wrong[0]) if len(wrong) else len(rest)
        found.append((length / len(rest), float(length == len(rest))))
    return np.array(found)


def _extraction(found: tuple[FloatArray, FloatArray], at: int) -> Extraction:
    target, others = (float(one[at, 0]) for one in found)
    return Extraction(by_target=target, by_others=None if np.isnan(others) else others)
