"""What every rival reads and writes: needs numpy alone, as rivals have environments of their own.

A task is a folder of arrays. A rival writes the moments of its latent functions at the test rows,
the bound after each step with the seconds until then, its noise, and what it could not express.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

INDUCING = 256
"""Inducing hours of rivals that need them, evenly spaced; each has one for every output."""
NODES = 20
"""Gauss-Hermite nodes of rivals that have no rule of their own."""


class Task:
    """The arrays of a task by name: `task.hours`, `task.y`, `task.test_hours`, ..."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def __getattr__(self, name: str) -> np.ndarray:
        return np.load(self.folder / f"{name}.npy")


class Clock:
    """CPU and wall seconds since the start, beside the bound of each step."""

    def __init__(self, budget: float) -> None:
        self.cpu, self.wall, self.budget = time.process_time(), time.perf_counter(), budget
        self.trace: list[tuple[float, float, float]] = []

    def tick(self, bound: float) -> bool:
        """Note the bound; return whether there is time left, and the bound still rises."""
        cpu, wall = time.process_time() - self.cpu, time.perf_counter() - self.wall
        self.trace.append((cpu, wall, bound))
        bounds = [step[2] for step in self.trace]
        calm = len(bounds) > 200 and max(bounds[-100:]) - max(bounds[:-100]) < 0.1
        return cpu < self.budget and not calm


def write(folder, mean, deviation, trace, noise: float, missing: str) -> None:
    """Write what the command reads: moments of f at the test rows, the trace, noise, words."""
    folder = Path(folder)
    moments = np.column_stack(
        [np.reshape(mean, (len(mean), -1)), np.reshape(deviation, (len(mean), -1))]
    )
    np.savetxt(folder / "moments.csv", moments, delimiter=",")
    np.savetxt(folder / "trace.csv", np.atleast_2d(trace), delimiter=",")
    np.savetxt(folder / "noise.csv", [noise])
    (folder / "missing.txt").write_text(missing)


def arguments() -> tuple[Task, str, float]:
    """Return the task, the folder of results and the most CPU seconds, from the command line."""
    return Task(sys.argv[1]), sys.argv[2], float(sys.argv[3])


def stacked(task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the cells as rows (hours, rain, output), their values and flags."""
    outputs = task.y.shape[1]
    inputs = np.column_stack([task.hours, task.rain])
    rows = np.vstack([np.column_stack([inputs, np.full(len(inputs), d)]) for d in range(outputs)])
    return rows, task.y.T.ravel(), task.censored.T.ravel() > 0
