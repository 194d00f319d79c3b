"""The chart library as text, so that a page carries it along."""

from __future__ import annotations

import functools
import secrets
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from censored_gp.files import replacing
from censored_gp.runtime import cache_folder

__all__ = ["javascript", "make_beside", "require_altair"]

MAKE = """\
import os, sys, vl_convert
version, draft, place = sys.argv[1:]
with open(draft, "w", encoding="utf-8") as file:
    file.write(vl_convert.javascript_bundle(vl_version=version))
os.replace(draft, place)
"""


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
    """Return Vega, Vega-Lite and Vega-Embed in one script, of the version altair writes for.

    It takes seconds to make: it is kept on disk, beside the compiled programs.
    """
    process, place = make_beside(), _place()
    if process is not None:
        process.wait()
    if place is not None and place.is_file():
        text = place.read_text(encoding="utf-8")
    else:
        text = _made_here()
        if place is not None:
            _keep(text, place)
    return text.replace("</script", r"<\/script")


@functools.cache
def make_beside() -> subprocess.Popen[bytes] | None:
    """Begin to make the script in a process of its own, where it is not kept and one can be had.

    What makes it lets no other thread go on meanwhile.
    """
    place = _place()
    if place is None or place.is_file() or "python" not in Path(sys.executable or "").name:
        return None
    draft = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        return subprocess.Popen(
            [sys.executable, "-c", MAKE, _version(), str(draft), str(place)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None


def _made_here() -> str:
    import vl_convert

    bundle: Any = vl_convert.javascript_bundle
    return bundle(vl_version=_version())


@functools.cache
def _version() -> str:
    """Return the version of Vega-Lite to ask for."""
    import vl_convert

    major, minor, *_ = require_altair().SCHEMA_VERSION.removeprefix("v").split(".")
    known = vl_convert.get_vegalite_versions()
    wanted = f"{major}.{minor}"
    # A near version of the same generation reads the same charts.
    return wanted if wanted in known else known[-1]


def _place() -> Path | None:
    """Return where the script is kept, None where the user wants nothing kept."""
    folder = cache_folder()
    name = f"vega-lite-{_version()}-of-vl-convert-{version('vl-convert-python')}.js"
    return None if folder is None else folder / name


def _keep(text: str, place: Path) -> None:
    """Write the script whole or not at all; a page needs no copy on disk."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError:
        return
