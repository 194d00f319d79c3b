"""The chart library as text, so that a page carries it along."""

from __future__ import annotations

import functools
import secrets
import subprocess
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from censored_gp.estimator.persistence import replacing
from censored_gp.model.compilation import cache_folder

__all__ = ["javascript", "make_beside", "require_altair"]

MAKE = """\
import os, sys, vl_convert
version, draft, place = sys.argv[1:]
text = vl_convert.javascript_bundle(vl_version=version)
try:
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, place)
except OSError:
    os.unlink(draft)
"""
"""Without the package's own means of writing files, which takes longer to import than this."""
PATIENCE = 60.0
"""Seconds after which the other process is not waited for any longer."""
INSIDE = "vegaEmbed"
"""What the script defines: a file without it is none."""


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
    _wait_for(make_beside())
    place = _place()
    text = _kept(place)
    if text is None:
        text = _made_here()
        _keep(text, place)
    return text.replace("</script", r"<\/script")


@functools.cache
def make_beside() -> subprocess.Popen[bytes] | None:
    """Begin to make the script in a process of its own, where it is not kept and one can be had.

    What makes it lets no other thread go on meanwhile.
    """
    place = _place()
    if place is None or _kept(place) or "python" not in Path(sys.executable or "").name:
        return None
    draft = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
    # Safe: what lies in the folder that the user is in is not imported.
    command = [sys.executable, "-P", "-c", MAKE, _version(), str(draft), str(place)]
    nowhere = subprocess.DEVNULL
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        return subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere)
    except OSError:
        return None


def _wait_for(process: subprocess.Popen[bytes] | None) -> None:
    """Wait until a process has ended, or end it."""
    if process is None:
        return
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


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
    try:
        maker = version("vl-convert-python")
    except PackageNotFoundError:
        return None
    return folder and folder / f"vega-lite-{_version()}-of-vl-convert-{maker}.js"


def _kept(place: Path | None) -> str | None:
    """Return the script as it was kept, None where it was not, or cannot be read."""
    try:
        text = "" if place is None else place.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return text if INSIDE in text else None


def _keep(text: str, place: Path | None) -> None:
    """Write the script whole or not at all; a page needs no copy on disk."""
    if place is None:
        return
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError:
        return
