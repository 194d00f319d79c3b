"""The chart library as text, so that a page carries it along."""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

__all__ = ["javascript", "require_altair"]


def require_altair() -> Any:
    """Return altair, or say how to get it and the package that carries its JavaScript."""
    try:
        import altair

        import_module("vl_convert")  # it carries the JavaScript, and is asked for later
    except ImportError as error:
        raise ImportError(
            f"A report needs {error.name}, which is not installed: "
            'pip install "censored-gp[report]".'
        ) from error
    return altair


@functools.cache
def javascript() -> str:
    """Return Vega, Vega-Lite and Vega-Embed in one script, of the version altair writes for."""
    import vl_convert

    major, minor, *_ = require_altair().SCHEMA_VERSION.removeprefix("v").split(".")
    known = vl_convert.get_vegalite_versions()
    wanted = f"{major}.{minor}"
    # A near version of the same generation reads the same charts.
    version = wanted if wanted in known else known[-1]
    bundle: Any = vl_convert.javascript_bundle
    return bundle(vl_version=version).replace("</script", r"<\/script")
