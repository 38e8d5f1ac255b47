"""What attacks show about differential privacy: lower bounds on ε, with and without assumptions about the training."""

from glasshouse.evaluation.privacy.bounds import (
    DESIGNS,
    EVERY_RECORD,
    Design,
    Guesses,
    count_right,
    delta_shown,
    epsilon_lower_bound,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_trade_off,
    mu_if_independent,
    mu_lower_bound,
    posterior_bound,
    shares_right,
)
from glasshouse.evaluation.privacy.claim import (
    GaussianBound,
    Guessed,
    PrivacyClaim,
    PrivacyVerdict,
    as_claim,
    judge_claim,
)

__all__ = [
    "DESIGNS",
    "EVERY_RECORD",
    "Design",
    "GaussianBound",
    "Guessed",
    "Guesses",
    "PrivacyClaim",
    "PrivacyVerdict",
    "as_claim",
    "count_right",
    "delta_shown",
    "epsilon_lower_bound",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_trade_off",
    "judge_claim",
    "mu_if_independent",
    "mu_lower_bound",
    "posterior_bound",
    "shares_right",
]
