"""Whatever is passed, the answer is finite and whole, or the error is one that is documented."""

import copy
import json
import math
import sys
import types
import warnings

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes
from typer.testing import CliRunner

import censored_gp
from censored_gp import CensoredGP, Observations
from censored_gp.cli import app
from censored_gp.cli.output import write
from censored_gp.estimator import persistence
from censored_gp.estimator.analysis.lost_demand import FIGURES
from censored_gp.estimator.training import read_training
from censored_gp.likelihoods import FAMILIES
from fuzz import strategies as own
from fuzz.conftest import HOURS, refusing, table

warnings.filterwarnings("ignore", module="hypothesis")
NAMED = ("outputs", "time", "inputs", "by", "own_inputs")
BOUNDS = ("censored", "capacity", "lower", "upper", "exposure")


def leaves(answer):
    """All numbers of an answer, whatever it is made of."""
    if hasattr(answer, "to_dict") and hasattr(answer, "columns"):
        answer = {name: np.asarray(answer[name]) for name in answer.columns}
    if isinstance(answer, dict):
        answer = tuple(answer.values())
    if isinstance(answer, tuple | list):
        return [leaf for part in answer for leaf in leaves(part)]
    found = np.asarray(answer)
    return [found] if found.dtype.kind == "f" else []


@given(
    x=st.one_of(own.tables(), own.arrays()),
    y=st.one_of(st.none(), own.arrays(), own.tables(names=("a", "b"))),
    named=st.dictionaries(st.sampled_from(NAMED), own.names),
    bounds=st.dictionaries(st.sampled_from(BOUNDS), own.limits),
    side=st.sampled_from(["right", "left", "share", "", None]),
    rounded=st.one_of(st.none(), st.just("auto"), own.limits),
    holidays=st.sampled_from([None, None, None, "DK", "US-NY", "XX", ""]),
    family=st.sampled_from([*FAMILIES, "unknown"]),
)
def test_frames(x, y, named, bounds, side, rounded, holidays, family):
    with refusing():
        every = dict.fromkeys(NAMED) | named | {"rounded": rounded, "holidays": holidays}
        every |= dict.fromkeys(BOUNDS) | bounds
        found = read_training(CensoredGP(family), x, y, side=side, **every)
        assert np.all(np.isfinite(found.inputs))
        assert len(found.inputs) == len(found.seen.lower) > 0
        assert np.all(found.seen.lower <= found.seen.upper)


@given(
    make=st.sampled_from(
        ["exact", "from_flags", "from_bounds", "from_capacity", "from_detection_limit",
         "from_rounding", "init"]
    ),
    y=st.one_of(own.arrays(), own.numbers),
    more=st.one_of(own.arrays(), own.limits),
)  # fmt: skip
def test_bounds(make, y, more):
    with refusing():
        match make:
            case "exact":
                found = Observations.exact(y)
            case "init":
                found = Observations(y, more)
            case _:
                found = getattr(Observations, make)(y, more)
        assert np.all(found.lower <= found.upper)
        assert found.lower.shape == found.upper.shape == found.shape
        kinds = (found.is_exact, found.is_right, found.is_left, found.is_interval, found.is_missing)
        assert np.all(np.sum(kinds, axis=0) == 1)


ROWS = np.array([[0.0, 1.0], [0.5, 1.0], [0.5, 2.0], [-3.0, 0.0]])


@given(first=own.simple_kernels(), second=own.simple_kernels(), join=st.sampled_from("+* "))
def test_kernels(first, second, join):
    with refusing():
        made = [kind(*given, **keywords) for kind, given, keywords in (first, second)]
        made = {"+": lambda a, b: a + b, "*": lambda a, b: a * b, " ": lambda a, _: a}[join](*made)
        repr(made)
        with jax.disable_jit():
            gram = np.asarray(made(ROWS, ROWS))
        assert gram.shape == (4, 4)
        assert np.all(np.isfinite(gram))
        assert np.allclose(gram, gram.T)
        assert np.linalg.eigvalsh(gram).min() >= -1e-9 * max(1.0, np.abs(gram).max())


QUERIES = {
    "predict": (), "quantile": ("levels",), "interval": ("levels",), "cdf": ("y",),
    "log_density": ("y",), "sample": ("n",), "sample_prior": ("n",), "impute_interval": ("levels",),
    "imputation": ("rows",), "lost_demand": ("by",), "required_supply": ("levels",),
    "forecast": ("steps",), "correlations": ("by",), "predict_distribution": (),
}  # fmt: skip
WITHOUT_ROWS = ("impute_interval", "imputation", "lost_demand", "forecast", "correlations")


@given(
    name=st.sampled_from(sorted(QUERIES)),
    good=st.booleans(),
    x=st.one_of(own.tables(names=("time", "rain", "a", "b")), own.arrays()),
    levels=st.one_of(st.floats(0.01, 0.99), own.numbers, own.odd, st.lists(own.numbers)),
    y=st.one_of(own.numbers, own.arrays(), own.odd),
    # Ten million draws are a number like any other, and take hours.
    n=st.one_of(st.integers(-3, 5), own.odd, st.floats(-2, 3)),
    rows=st.one_of(st.integers(-24, 23), st.lists(st.integers(-9, 23), max_size=3), st.none()),
    by=st.one_of(own.names, own.odd, st.sampled_from(["hour", "mean", "output", "scale"])),
    steps=st.one_of(st.integers(-2, 5), own.odd),
)
def test_queries(model, name, good, x, **given):
    queried = [given[key] for key in QUERIES[name]]
    if name not in WITHOUT_ROWS:
        good_rows = {"time": HOURS[:5] + 24, "rain": np.linspace(0, 1, 5)}
        queried.insert(0, good_rows if good else x)
    more = {"samples": 5} if name in ("lost_demand", "required_supply", "forecast") else {}
    y_is_nan = name in ("cdf", "log_density")
    with refusing():
        answer = getattr(model, name)(*queried, **more)
        if hasattr(answer, "mean") and hasattr(answer, "names"):
            answer = answer.mean
        if name == "lost_demand":
            # A missing label is that of a group.
            answer = [[row[figure] for figure in FIGURES] for row in answer]
        # NaN stays NaN where the user asks about NaN.
        assert y_is_nan or not any(np.isnan(leaf).any() for leaf in leaves(answer))


EXECUTED: list[str] = []
WATCHED = types.SimpleNamespace(on=False)
EVENTS = ("exec", "compile", "os.system", "subprocess.Popen", "pickle.find_class", "socket.connect")
"""What no loading may do (see the audit events of Python)."""


def watch(event, _):
    if WATCHED.on and event in EVENTS:
        EXECUTED.append(event)


sys.addaudithook(watch)


def load(path):
    """Load a file; nothing in it may be executed."""
    WATCHED.on = True
    try:
        return censored_gp.load(path)
    finally:
        WATCHED.on = False
        assert not EXECUTED, EXECUTED


class Saved:
    """Bytes that are not printed when a case fails."""

    def __init__(self, content):
        self.content = content


@pytest.fixture(scope="session")
def saved(model, tmp_path_factory):
    """The bytes of a model file."""
    path = persistence.save(model, tmp_path_factory.mktemp("saved") / "model.cgp")
    load(path)
    return Saved(path.read_bytes())


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("files") / "model.cgp"


@given(data=st.data())
def test_files(saved, place, data):
    """Bytes changed, cut or inserted anywhere, most of all in the header."""
    content = bytearray(saved.content)
    for _ in range(data.draw(st.integers(1, 4))):
        far = data.draw(st.sampled_from([16, 2000, len(content)]))
        at = data.draw(st.integers(0, max(0, min(far, len(content)) - 1)))
        match data.draw(st.sampled_from(["change", "cut", "insert", "delete"])):
            case "change" if content:
                content[at] = data.draw(st.integers(0, 255))
            case "cut":
                del content[at:]
            case "insert":
                content[at:at] = data.draw(st.binary(max_size=8))
            case "delete":
                del content[at : at + data.draw(st.integers(1, 8))]
    place.write_bytes(content)
    with refusing():
        again = persistence.save(load(place), place.with_name("again.cgp"))
        assert again.read_bytes() == saved.content


def places(value, path=()):
    """The paths of everything in a JSON value."""
    yield path
    items = value if isinstance(value, list) else ()
    inner = value.items() if isinstance(value, dict) else enumerate(items)
    for key, item in inner:
        yield from places(item, (*path, key))


json_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3),
        st.sampled_from(["os.system", "object", "Popen", "__class__", "<f8", "O", "V9999999999"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from(["$", "class", "items", "fields", "name"]), inner),
    ),
    max_leaves=4,
)  # fmt: skip


@given(changes=st.lists(st.tuples(st.integers(0, 10**6), json_values), min_size=1, max_size=2))
def test_contents(saved, place, changes):
    """A file that somebody has written on purpose, with a checksum that is right."""
    saved = saved.content
    arrays = from_bytes(saved)
    size = int.from_bytes(saved[:8], "little")
    header = json.loads(json.loads(saved[8 : 8 + size])["__metadata__"][persistence.HEADER])
    content = json.loads(header["content"])
    for number, value in changes:
        paths = [path for path in places(content) if path]
        *outer, last = paths[number % len(paths)]
        inner = content
        for key in outer:
            inner = inner[key]
        inner[last] = copy.deepcopy(value)
    header["content"] = json.dumps(content)
    header["sha256"] = persistence._digest(header["content"], arrays)
    place.write_bytes(to_bytes(arrays, {persistence.HEADER: json.dumps(header)}))
    with refusing():
        assert isinstance(load(place), CensoredGP)


@pytest.fixture(scope="session")
def here(model, tmp_path_factory):
    """A folder with a table and a model."""
    folder = tmp_path_factory.mktemp("here")
    write(table() | {"time": HOURS.astype("datetime64[us]")}, str(folder / "t.csv"))
    (folder / "empty.csv").write_text("")
    (folder / "odd.csv").write_bytes(b'\xff\xfe\x00,"\n1,2,3\n')
    persistence.save(model, folder / "m.cgp")
    (folder / "bad.cgp").write_bytes((folder / "m.cgp").read_bytes()[:-9])
    return folder


COMMANDS = (
    *("fit", "predict", "impute", "lost-demand", "forecast", "required-supply", "correlations"),
    *("data", "report", "", "nonsense"),
)
FLAGS = (
    *("--outputs", "--time", "--inputs", "--by", "--only", "--censored", "--capacity", "--lower"),
    *("--upper", "--side", "--likelihood", "--model", "--iterations", "--seed", "--load", "--save"),
    *("--output", "--where", "--zone", "--delimiter", "--encoding", "--decimal", "--probability"),
    *("--samples", "--steps", "--own-inputs", "--holidays", "--exposure", "--rounded"),
    *("--substitution", "--time-format", "--help", "--nonsense", "-o"),
)
VALUES = (
    *("t.csv", "empty.csv", "odd.csv", "m.cgp", "bad.cgp", "absent.csv", ".", "-", "", "a", "a,b"),
    *("time", "rain", "a_empty", "a=5", "b=rain", "poisson", "a=gamma,b=poisson", "1", "0", "-1"),
    *("0.5", "nan", "1e400", "right", "cgp", "out.csv", "out.parquet", "out.xyz", "no/out.csv"),
    *("Europe/Berlin", ";", "utf-16", "rot13", ",", "rain=0", "hour", "x" * 300, "--", "\x00"),
    *("DK", "rain/60", "1-rain/60", "unknown", "learned", "a>b=0.5", "a=1,b=0.5", "%d/%m/%Y"),
)


@given(
    command=st.sampled_from(COMMANDS),
    sound=st.booleans(),
    options=st.lists(st.tuples(st.sampled_from(FLAGS), st.sampled_from(VALUES)), max_size=4),
    loose=st.lists(st.sampled_from(VALUES), max_size=2),
)
def test_command_lines(here, model, command, sound, options, loose):
    """A known exit code, no traceback, and every file that appears is whole."""
    line = [command, *(word for pair in options for word in pair), *loose]
    line += ["--load", "m.cgp", "--samples", "5"] if sound else []
    before = {path.name for path in here.iterdir()}

    def fit(self, *_, **__):
        vars(self).update({k: v for k, v in vars(model).items() if k.endswith("_")})
        return self

    with pytest.MonkeyPatch.context() as patch, refusing():
        patch.chdir(here)
        patch.setattr(CensoredGP, "fit", fit)
        patch.setattr("censored_gp.reporting.write_report", lambda *_, **__: None, raising=False)
        ended = CliRunner().invoke(app, line, input="time,rain,a\n1,2,3\n")
        assert ended.exit_code in (0, 1, 2), (line, ended.output)
        assert ended.exception is None or isinstance(ended.exception, SystemExit), line
        # The name of an exception in a message is that of one nobody has thought of.
        assert not any(f"Error: {kind.__name__}:" in ended.stderr for kind in (
            IndexError, KeyError, OverflowError, ZeroDivisionError, AttributeError, TypeError,
            AssertionError, MemoryError, RecursionError, UnboundLocalError, NotImplementedError,
        )), (line, ended.stderr)  # fmt: skip
        assert "Traceback" not in ended.output
    new = {path.name for path in here.iterdir()} - before
    assert not any(name.endswith(".part") for name in new), (line, new)
    for name in new:
        path = here / name
        if ended.exit_code == 0 and path.is_file():
            assert path.stat().st_size > 0
        path.unlink()


@given(
    family=st.sampled_from(["gaussian", "poisson"]),
    size=st.sampled_from([1.0, 1e-6, 1e6]),
    draws=st.lists(st.floats(0, 1), min_size=12, max_size=12),
)
def test_fits(family, size, draws):
    """Cells of every kind: the same places in every case, so that programs are shared."""
    values = np.array(draws) * 10
    values = np.round(values) if family == "poisson" else size * values
    lower, upper = values.copy(), values.copy()
    upper[3:6], lower[6:9], upper[9:] = np.inf, -np.inf, upper[9:] + math.ceil(size)
    with refusing():
        kernels = {"mean": [own.kernels.RBF(1.0)]}
        made = CensoredGP(family, kernels=kernels, heteroscedastic=False, max_iterations=2)
        x = np.linspace(0, 3, 12)[:, None]
        made.fit(x, Observations(lower[:, None], upper[:, None]))
        assert np.isfinite(made.elbo_)
        mean, std = made.predict(x[:4], return_std=True)
        assert np.all(np.isfinite(mean))
        assert np.all(std > 0)
