"""The folder of compiled programs may be absent, damaged, full or shared: fits are the same."""

import pytest

from support import processes

pytestmark = pytest.mark.slow

SCRIPT = """
import warnings
import jax
import numpy as np
from censored_gp import CensoredGP
from censored_gp.kernels import RBF
from censored_gp.model.compilation import keep_compiled_programs
keep_compiled_programs()
# However quickly they are compiled.
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
x = np.linspace(0, 3, 12)[:, None]
warnings.simplefilter("ignore")
model = CensoredGP(kernels={"mean": [RBF(1.0)]}, heteroscedastic=False, max_iterations=4)
model.fit(x, np.sin(x[:, 0]), censored=x[:, 0] > 2)
print(f"{model.elbo_:.9f} {model.predict(x[:2]).sum():.9f}")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("caches")


def fit(folder, before="", **environment):
    """Fit in a process of its own; return what it found."""
    ended = processes.run("-c", before + SCRIPT, cwd=folder, **environment)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def expected(folder):
    """What a fit without any folder finds."""
    return fit(folder, CENSORED_GP_CACHE="0")


def test_damaged_programs_are_compiled_anew(folder, expected):
    cache = folder / "damaged"
    assert fit(folder, CENSORED_GP_CACHE=str(cache)) == expected
    kept = [path for path in cache.rglob("*") if path.is_file()]
    assert kept
    for number, path in enumerate(kept):
        content = path.read_bytes()
        half = content[: len(content) // 2]
        path.write_bytes((half, b"", b"\x00garbage" * 50, content[::-1])[number % 4])
    assert fit(folder, CENSORED_GP_CACHE=str(cache)) == expected


def test_two_processes_share_one_folder(folder, expected):
    cache = str(folder / "shared")
    both = [processes.start("-c", SCRIPT, cwd=folder, CENSORED_GP_CACHE=cache) for _ in range(2)]
    found = [process.communicate(timeout=300) for process in both]
    assert [out for out, _ in found] == [expected] * 2, found
    assert fit(folder, CENSORED_GP_CACHE=cache) == expected


@pytest.mark.parametrize("case", ["a file", "nowhere", "full", "no home"])
def test_a_folder_that_cannot_be_written_is_done_without(folder, expected, case):
    (folder / "file").write_text("")
    match case:
        case "a file":
            found = fit(folder, CENSORED_GP_CACHE=str(folder / "file"))
        case "nowhere":
            found = fit(folder, CENSORED_GP_CACHE="/proc/nowhere/compiled")
        case "full":
            limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
            found = fit(folder, limit, CENSORED_GP_CACHE=str(folder / "full"))
        case "no home":
            without = {"HOME": None, "XDG_CACHE_HOME": None, "CENSORED_GP_CACHE": None}
            nobody = (
                "import os.path, pathlib\n"
                "os.path.expanduser = lambda path: path\n"  # What it is for an unknown user.
            )
            found = fit(folder, nobody, **without)
    assert found == expected
