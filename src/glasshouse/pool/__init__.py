"""The shadow pool: many models, on disk or in passing, never trained twice and never lost."""

from glasshouse.pool.answers import KeptAnswers
from glasshouse.pool.shadow_pool import ShadowPool

__all__ = ["KeptAnswers", "ShadowPool"]
