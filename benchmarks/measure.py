"""Run commands in processes of their own, and say what they used.

This module and those that call it import neither the package nor JAX: the peak memory of a process
is at least that of the one that started it.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parents[1]
"""The root of this source tree."""


class Used(NamedTuple):
    """CPU and wall seconds and peak memory of a whole process, what it printed, why it failed."""

    cpu: float
    wall: float
    gigabytes: float
    output: str
    failure: str = ""


def run(
    command: Sequence[str],
    limit: float,
    tree: Path = HERE,
    variables: Mapping[str, str] | None = None,
    folder: Path = HERE,
) -> Used:
    """Run a command, with the package of a source tree first on the path, for at most `limit` s."""
    path = os.pathsep.join([str(tree / "src"), str(HERE)])
    settings = os.environ | {"PYTHONPATH": path} | dict(variables or {})
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, stdout=output, stderr=errors, env=settings, cwd=folder, start_new_session=True
        )
        late = False
        while True:
            done, status, used = os.wait4(process.pid, os.WNOHANG)
            if done:
                break
            if not late and time.perf_counter() - start > limit:
                os.killpg(process.pid, signal.SIGKILL)
                late = True
            time.sleep(0.02)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - start
        output.seek(0)
        errors.seek(0)
        said, complaint = output.read(), errors.read().strip().splitlines()
    failure = ""
    if late:
        failure = f"more than {limit:.0f} s"
    elif process.returncode:
        failure = complaint[-1] if complaint else f"ended with status {process.returncode}"
    return Used(used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 2**20, said, failure)


def peak_gigabytes() -> float:
    """Return the peak memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
