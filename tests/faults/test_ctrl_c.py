"""Ctrl-C at random moments of a fit: it stops soon, keeps the best so far, and exits cleanly.

``pytest tests/faults/test_ctrl_c.py -m "" --tries 100`` tries it a hundred times in each way.
"""

import collections
import os
import random
import signal
import time

import numpy as np
import pytest

import censored_gp
from censored_gp.cli.output import write
from censored_gp.estimator import censored_gp as estimator
from censored_gp.kernels import RBF
from support import processes


def soon():
    """Seconds within which a fit must stop: two, and more on a machine that does other things."""
    return 2.0 * (2.0 + os.getloadavg()[0] / (os.cpu_count() or 1))


FIT = (
    *("fit", "bikes.csv", "--outputs", "station_1,station_2", "--time", "time"),
    *("--censored", "station_1_empty,station_2_empty", "--likelihood", "poisson"),
    *("--save", "model.cgp"),
)
SCRIPT = """
import sys, time, warnings
import jax, numpy as np
from censored_gp import HMOCGP, simulate
warnings.simplefilter("ignore")
world = simulate.bike_share(days=7, seed=1)
model = HMOCGP("poisson")
print("begin", flush=True)
try:
    model.fit(world.inputs(), world.observed, censored=world.censored)
except KeyboardInterrupt:
    # A fit that was over when Ctrl-C was pressed is there as a whole.
    there = [hasattr(model, name) for name in ("posterior_", "units_", "training_", "report_")]
    print("raised", model.report_.converged if all(there) else not any(there), flush=True)
    if "raise" in sys.argv:
        raise
else:
    leaves = [leaf for leaf in jax.tree.leaves(model.posterior_) if isinstance(leaf, np.ndarray)]
    print(model.report_.status, all(np.isfinite(leaf).all() for leaf in leaves), flush=True)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a week of a bike share."""
    folder = tmp_path_factory.mktemp("bikes")
    table = censored_gp.simulate.bike_share(days=7, seed=1).table()
    table["time"] = table["time"].astype("datetime64[us]")
    write(table, str(folder / "bikes.csv"))
    return folder


def press_in_python(folder, wait, cache, how):
    """Interrupt a Python program; return what became of its fit."""
    process = processes.start("-c", SCRIPT, how, cwd=folder, CENSORED_GP_CACHE=cache)
    assert process.stdout.readline() == "begin\n"
    time.sleep(wait)
    process.send_signal(signal.SIGINT)
    pressed = time.monotonic()
    ended, _, sound = process.stdout.readline().strip().partition(" ")
    took = time.monotonic() - pressed
    _, errors = process.communicate(timeout=120)
    assert "Fatal" not in errors, errors
    if ended == "converged":
        # The signal came after the fit: it may end the program at any place.
        return ended
    assert took < soon(), (wait, took)
    assert process.returncode == (-signal.SIGINT if (ended, how) == ("raised", "raise") else 0)
    assert ended in ("raised", "interrupted"), errors
    assert sound == "True", (ended, sound)
    return ended


def press_in_command(folder, wait, cache, from_start):
    """Interrupt the command line; return what became of its fit."""
    process = processes.start(*processes.CENSORED_GP, *FIT, cwd=folder, CENSORED_GP_CACHE=cache)
    if not from_start:
        assert "Fitting" in process.stderr.readline()
    time.sleep(wait)
    process.send_signal(signal.SIGINT)
    pressed = time.monotonic()
    _, errors = process.communicate(timeout=120)
    took = time.monotonic() - pressed
    assert "Fatal" not in errors, errors
    assert not list(folder.glob(".*.part"))
    kept, saved = folder / "model.interrupted.cgp", folder / "model.cgp"
    if process.returncode == 0:
        saved.unlink()
        return "converged"
    if from_start and process.returncode == -signal.SIGINT:
        # While Python itself starts, and reads the group of commands.
        assert "cli/fitting" not in errors
        return "not begun"
    assert process.returncode == 130, (process.returncode, errors)
    assert took < soon(), (wait, took)
    if saved.exists():
        # The fit was done, and its summary was being written.
        saved.unlink()
        return "saved"
    assert "Interrupted" in errors or from_start
    if not kept.exists():
        return "nothing yet"
    assert kept.name in errors
    assert censored_gp.load(kept).report_.status in ("interrupted", "converged")
    kept.unlink()
    return "kept"


def press(folder, tries, way, seed):
    """Try it at random moments, with programs on disk and without; count what happened."""
    chance, ends = random.Random(seed), collections.Counter()
    for i in range(tries):
        cache = "0" if i % 2 else str(folder / "cache")
        match way:
            case "command":
                ended = press_in_command(folder, chance.uniform(0, 5), cache, False)
            case "command from its start":
                ended = press_in_command(folder, chance.uniform(0, 6), cache, True)
            case "python":
                how = chance.choice(("catch", "raise"))
                ended = press_in_python(folder, chance.uniform(0, 5), cache, how)
        ends[ended] += 1
    print(way, dict(ends))
    return ends


WAYS = ("python", "command", "command from its start")


@pytest.mark.parametrize("way", WAYS[:2])
def test_a_fit_stops_at_once_and_exits_cleanly(folder, way):
    press(folder, 1, way, seed=1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("presses", [1, 2])
def test_after_the_last_step_the_whole_of_a_fit_is_there_or_nothing(monkeypatch, presses):
    """One Ctrl-C waits until all of it is there; a second one does not wait."""

    def pressed(*arguments):
        for _ in range(presses):
            signal.raise_signal(signal.SIGINT)
        return honest(*arguments)

    honest = estimator._checked
    monkeypatch.setattr(estimator, "_checked", pressed)
    model = censored_gp.CensoredGP(kernels=RBF(1.0), heteroscedastic=False, max_iterations=2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 2.0])
    finally:
        signal.signal(signal.SIGINT, before)
    there = {hasattr(model, name) for name in ("posterior_", "units_", "training_", "report_")}
    assert there == {presses == 1}
    if presses == 1:
        assert np.isfinite(model.predict([[0.5]])).all()


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_fit_stops_cleanly_at_every_random_moment(folder, request, way):
    tries = request.config.getoption("--tries")
    ends = press(folder, tries, way, seed=tries)
    assert sum(ends.values()) == tries
    assert set(ends) != {"converged"}
