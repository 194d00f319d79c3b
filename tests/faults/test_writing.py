"""Processes killed while they write, and full disks: what was there stays, or is whole."""

import random
import signal
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import censored_gp
from censored_gp import CensoredGP
from censored_gp.kernels import RBF
from support import processes

FULL_DISK = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
"""No file may grow beyond 2,000 bytes: writing fails as on a full disk, but for its words."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a model file."""
    folder = tmp_path_factory.mktemp("written")
    x = np.linspace(0, 3, 12)[:, None]
    model = CensoredGP(kernels={"mean": [RBF(1.0)]}, heteroscedastic=False, max_iterations=3)
    with pytest.warns(ConvergenceWarning):
        model.fit(x, np.sin(x[:, 0])).save(folder / "model.cgp")
    return folder


def parts(folder):
    return list(folder.glob(".*.part"))


def test_a_save_that_is_killed_leaves_a_whole_file(folder):
    """Twenty children of one process save over the same file, and are killed at random moments."""
    code = """
import os, random, signal, sys, time, warnings
warnings.simplefilter("ignore")
import censored_gp
model = censored_gp.load("model.cgp")
chance = random.Random(1)
for tries in range(1, 21):
    child = os.fork()
    while not child:
        model.save("killed.cgp")
    # Ever longer, so that some files are finished on a slow machine, too.
    time.sleep(chance.uniform(0, 0.02 * tries))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if os.path.exists("killed.cgp"):
        assert censored_gp.load("killed.cgp").elbo_ == model.elbo_
"""
    ended = processes.run("-c", code, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert (folder / "killed.cgp").exists()
    for path in parts(folder):
        path.unlink()


def test_a_full_disk_keeps_the_old_model_and_says_so(folder):
    before = (folder / "model.cgp").read_bytes()
    code = f"""
import censored_gp
model = censored_gp.load("model.cgp")
{FULL_DISK}
try:
    model.save("model.cgp")
except OSError as error:
    print("refused", error)
{processes.CENSORED_GP[1]}
"""
    line = ("fit", "--load", "model.cgp", "--save", "other.cgp")
    ended = processes.run("-c", code, *line, cwd=folder)
    assert "refused" in ended.stdout, ended.stderr
    assert (folder / "model.cgp").read_bytes() == before
    assert ended.returncode == 1
    assert "Error" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (folder / "other.cgp").exists()
    assert not parts(folder)


def test_a_study_that_is_killed_goes_on_where_it_was(tmp_path):
    code = """
import sys, time
from pathlib import Path
from reproduction.study import Study, complete
def square(settings):
    time.sleep(0.01)
    return {"square": int(settings["x"]) ** 2}
study = Study("squares", ("x",), ("square",), square)
print("begin", flush=True)
rows = complete(study, [{"x": x} for x in range(60)], Path("."), jobs=1, progress=False)
print(int(rows["square"].sum()), len(rows), rows["error"].ne("").sum())
"""
    chance, seen = random.Random(2), 0
    for _ in range(2):
        process = processes.start("-c", code, cwd=tmp_path)
        assert process.stdout.readline() == "begin\n"
        time.sleep(chance.uniform(0.1, 0.4))
        process.kill()
        process.communicate()
        lines = (tmp_path / "squares.csv").read_text().count("\n")
        assert lines >= seen
        seen = lines
    ended = processes.run("-c", code, cwd=tmp_path)
    assert ended.stdout.split() == ["begin", str(sum(x**2 for x in range(60))), "60", "0"]
    assert seen > 1


@pytest.mark.slow
def test_a_report_that_is_killed_leaves_the_old_one(folder):
    line = ("report", "--load", "model.cgp", "--output", "report.html")
    began = time.monotonic()
    ended = processes.run(*processes.CENSORED_GP, *line, cwd=folder)
    took, page = time.monotonic() - began, folder / "report.html"
    assert ended.returncode == 0, ended.stderr
    old = page.read_bytes()
    assert old.rstrip().endswith(b"</html>")
    chance = random.Random(3)
    for share in (*np.linspace(0.5, 1.0, 5), chance.uniform(0.3, 1.1)):
        process = processes.start(*processes.CENSORED_GP, *line, cwd=folder)
        time.sleep(share * took)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert page.read_bytes().rstrip().endswith(b"</html>")
        assert len(page.read_bytes()) > 0.9 * len(old)
    assert censored_gp.load(folder / "model.cgp")
