"""For the manual's build: our docstrings say ``Example:``, which Griffe shows as a quote, and ``Examples:`` as code."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

__all__ = ["ExampleSections"]

_SECTION = re.compile(r"^(\s*)Example:$", flags=re.MULTILINE)


class ExampleSections(Extension):
    """Reads the section ``Example:`` as ``Examples:``."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Rename the section of one docstring, before it is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = as_examples(obj.docstring.value)


def as_examples(docstring: str) -> str:
    r"""A docstring whose examples are a section that Griffe knows.

    Example:
        >>> as_examples("One.\n\nExample:\n    >>> 1\n    1")
        'One.\n\nExamples:\n    >>> 1\n    1'
    """
    return _SECTION.sub(r"\1Examples:", docstring)
