"""The shadow pool: many models, kept on disk or used once; those on disk are never trained twice and never lost."""

from glasshouse.pool.shadow_pool import ShadowPool as ShadowPool
