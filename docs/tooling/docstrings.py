"""A griffe extension: mkdocstrings can show docstrings in the house form."""

import sys
from pathlib import Path
from typing import Any

from griffe import Extension, Object

sys.path.insert(0, str(Path(__file__).parent))

from house_form import rewrite


class HouseDocstrings(Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite one docstring; griffe calls this once for each object."""
        if obj.docstring is not None:
            obj.docstring.value = rewrite(obj.docstring.value)
