"""Other processes to be hurt: Python or the command line with the sources of this one."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CENSORED_GP = ("-c", "from censored_gp.cli import run; run()")
"""Arguments of the interpreter that make it the command `censored-gp`."""


def environment(**changes: str | None) -> dict[str, str]:
    """The environment of this process with some variables set, or left out if None."""
    paths = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT)]
    # A crash in C code is told in words.
    own = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONFAULTHANDLER": "1"} | changes
    return {name: value for name, value in own.items() if value is not None}


def start(*arguments: str, cwd: Path, text: bool = True, **changes: str | None):
    """Start an interpreter; its output can be read from pipes."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment(**changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=text,
    )


def run(*arguments: str, cwd: Path, timeout: float = 300, **changes: str | None):
    """Run an interpreter to its end; return how it ended."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
