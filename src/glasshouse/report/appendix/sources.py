"""What regulators and standards ask for, in our own words: data alone, each clause with the facts that speak to it.

Clauses are paraphrased; a reader must read the source. Paragraph numbers are given only where they are certain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from glasshouse.report.appendix import facts
from glasshouse.report.appendix.facts import Statement
from glasshouse.report.summarise import Summary

__all__ = ["SOURCES", "Clause", "Source"]


@dataclass(frozen=True, kw_only=True)
class Clause:
    """One thing that a source asks for.

    Args:
        place: where in the source.
        asks: what it asks, in our own words.
        says: functions that give what a run has to say to it.
        supply: what a run cannot say, and a reader must add.

    Example:
        >>> SOURCES[1].clauses[-1].place
        '11.3.3 (level 3)'
    """

    place: str
    asks: str
    says: tuple[Callable[[Summary], Iterator[Statement]], ...] = ()
    supply: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Source:
    """A document that asks for evidence."""

    name: str
    reference: str
    clauses: tuple[Clause, ...]


SOURCES = (
    Source(
        name="European Data Protection Board, Opinion 28/2024 on AI models",
        reference="Adopted 17 December 2024; edpb.europa.eu. The parts below belong to its first question: when a "
        "model trained on personal data may be called anonymous.",
        clauses=(
            Clause(
                place="Question 1, the test itself",
                asks="Judged case by case: it must be very unlikely that persons of the training data are identified "
                "through the model, or that their data are obtained from it by asking it, with all means that "
                "somebody is reasonably likely to use.",
                says=(facts.outcome, facts.by_groups, facts.smallest_leak, facts.same_answers),
                supply=(
                    "Whether the measured risk is small enough: a decision of the controller and the authority.",
                    "Who can reach the model and its answers, and which other data they could join with them.",
                ),
            ),
            Clause(
                place="Question 1, design of the model",
                asks="How data were chosen and reduced, how the training limits what is learned about a person, and "
                "what the answers give away.",
                says=(facts.training, facts.claimed, facts.how_well),
                supply=(
                    "Where the training data come from, and how they were minimised, cleaned or pseudonymised.",
                    "What limits the answers of the model in use (labels alone, rounding, rate limits).",
                ),
            ),
            Clause(
                place="Question 1, analysis of the model",
                asks="Whether the measures were carried out as planned, shown by reviews or audits.",
                says=(facts.repeatable,),
                supply=("Who reviewed the development of the model, when, and with what result.",),
            ),
            Clause(
                place="Question 1, testing and resistance to attacks",
                asks="Structured tests against state-of-the-art attacks, with their scope, how often and how well they "
                "were made; named are membership and attribute inference, exfiltration, regurgitation of training "
                "data, model inversion and reconstruction.",
                says=(
                    facts.attacks_tried,
                    facts.outcome,
                    facts.smallest_leak,
                    facts.drawn_at_random,
                    facts.trained_alike,
                ),
                supply=(
                    "Tests of attribute inference, exfiltration, regurgitation, inversion and reconstruction: this run "
                    "tested membership inference alone.",
                    "How often the tests are repeated, and after which changes of the model.",
                ),
            ),
            Clause(
                place="Question 1, documentation",
                asks="Records that let an authority follow the assessment: impact assessments, the advice of the data "
                "protection officer, measures taken, and what shows the resistance of the model.",
                says=(facts.repeatable, facts.who_was_trained_on),
                supply=(
                    "The data protection impact assessment, or the decision that none is needed.",
                    "The advice of the data protection officer.",
                ),
            ),
        ),
    ),
    Source(
        name="OWASP AI Security Verification Standard (AISVS) 1.0, C11.3 Membership-inference mitigation",
        reference="github.com/OWASP/AISVS, chapter C11.",
        clauses=(
            Clause(
                place="11.3.1 (level 2)",
                asks="Outputs are calibrated or perturbed, so that the model is not too sure about training records.",
                says=(facts.how_well,),
                supply=("How the outputs are calibrated: this run does not measure that.",),
            ),
            Clause(
                place="11.3.2 (level 2)",
                asks="Training on sensitive data uses differentially private optimisation with a documented budget ε.",
                says=(facts.claimed, facts.training),
                supply=("The record of the privacy accountant: noise, clipping, sampling rate, steps, ε and δ.",),
            ),
            Clause(
                place="11.3.3 (level 3)",
                asks="Simulated membership-inference attacks, such as shadow-model, likelihood-ratio or label-only "
                "ones, show that an attacker does not do meaningfully better than guessing on held-out data.",
                says=(
                    facts.attacks_tried,
                    facts.likelihood_ratio,
                    facts.outcome,
                    facts.by_groups,
                    facts.smallest_leak,
                    facts.drawn_at_random,
                    facts.trained_alike,
                ),
                supply=(
                    "What counts as meaningful: a limit that was set before the audit, and who set it.",
                    "That the audited model is the one in use: its version or checksum.",
                ),
            ),
        ),
    ),
    Source(
        name="United Kingdom, trusted research environments: release of trained models",
        reference="GRAIMATTER recommendations (2022) and SACRO-ML (arXiv 2212.01233). Each environment has its own "
        "rules.",
        clauses=(
            Clause(
                place="Before and during the training",
                asks="Choices of model and training that are known to raise the risk, such as overfitting, are avoided "
                "or explained.",
                says=(facts.training, facts.how_well, facts.claimed),
                supply=("Why this kind of model and these parameters were needed for the research.",),
            ),
            Clause(
                place="After the training",
                asks="The trained model is attacked in simulations, and the output checker gets the results with a "
                "description of how they were made.",
                says=(
                    facts.attacks_tried,
                    facts.likelihood_ratio,
                    facts.outcome,
                    facts.by_groups,
                    facts.smallest_leak,
                    facts.drawn_at_random,
                    facts.trained_alike,
                    facts.repeatable,
                ),
                supply=(
                    "Simulated attribute inference, and a check that the model's file holds no training records (as "
                    "those of nearest neighbours and support vector machines do): this run looks at answers alone.",
                ),
            ),
            Clause(
                place="Release",
                asks="How sensitive the data are, who receives the model and in which form decide how strict the "
                "checks are, and whether it leaves the environment.",
                says=(facts.who_was_trained_on, facts.same_answers),
                supply=(
                    "The tier or class of the release under the rules of the environment, and who decided it.",
                    "Who receives the model, and whether as a file or behind an interface.",
                ),
            ),
        ),
    ),
)
