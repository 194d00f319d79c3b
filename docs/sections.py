"""Examples in docstrings become sections of the reference, whether or not they have a heading."""

import re
from typing import Any

import griffe

HEADING = re.compile(r"^Examples\n-+$", re.M)
FIRST = re.compile(r"^>>> ", re.M)


class Examples(griffe.Extension):
    """Puts the heading over the first example: without it Markdown takes `>>>` for quotations."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Look at every object that has a docstring."""
        if obj.docstring and not HEADING.search(obj.docstring.value):
            obj.docstring.value = FIRST.sub("Examples\n--------\n>>> ", obj.docstring.value, 1)
