"""Models in files: what comes back, and what is refused."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from zoneinfo import ZoneInfo

import equinox as eqx
import numpy as np
import pytest
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import censored_gp
from censored_gp import CensoredGP, kernels, likelihoods, load
from censored_gp.data import layout as frames
from censored_gp.estimator import persistence as files
from censored_gp.inference.posterior import DrawnPosterior
from censored_gp.kernels import RBF, Periodic
from censored_gp.likelihoods import Gaussian, links
from censored_gp.model.lmc import in_blocks

HOURS = np.datetime64("2024-05-01T00", "h") + np.arange(30)
NEW = {"time": HOURS[5:12] + 12, "rain": np.linspace(0, 1, 7)}


@pytest.fixture(scope="module")
def model():
    """Times and a number in; two families, one with another link; flags, and a missing cell."""
    rng = np.random.default_rng(0)
    day = np.sin(2 * np.pi * np.arange(30) / 24)
    y = np.stack([day + 0.1 * rng.normal(size=30), rng.poisson(np.exp(1 + day))], axis=1)
    y[3, 0] = np.nan
    table = {"time": HOURS, "rain": rng.uniform(size=30)}
    settings = {
        "likelihood": [Gaussian(scale="softplus"), "poisson"],
        "kernels": {"mean": [Periodic("1d", "4h", columns="time"), RBF(columns="rain")]},
        "engine_settings": {"tolerance": 0.5},
        "max_iterations": 4,
        "hyperparameters": "mixed",
        "random_state": 3,
        "progress": lambda *_: None,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CensoredGP(heteroscedastic=False, **settings).fit(table, y, censored=y > 0.8)


@pytest.fixture
def path(model, tmp_path):
    return files.save(model, tmp_path / "model.cgp")


def header_of(path):
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    return json.loads(json.loads(raw[8 : 8 + size])["__metadata__"][files.HEADER])


def write(path, header, arrays=None):
    path.write_bytes(to_bytes(arrays or {}, {files.HEADER: json.dumps(header)}))
    return path


def roundtrip(value):
    arrays = {}
    text = json.dumps(files._encode(value, "setting", arrays))
    return files._decode(json.loads(text), from_bytes(to_bytes(arrays)))


def test_answers_after_loading_are_the_same_to_the_last_bit(model, path):
    loaded = load(path)
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(loaded.sample(NEW, 4), model.sample(NEW, 4))
    for before, after in zip(model.impute(True), loaded.impute(True), strict=True):
        np.testing.assert_array_equal(after, before)
    assert loaded.summary() == model.summary()


def test_symmetric_matrices_are_written_once():
    """A file takes half of what its covariances do, and any other matrix comes back as it was."""
    n = 40
    half = np.random.default_rng(0).normal(size=(3, n, n))
    symmetric = half + half.swapaxes(1, 2)
    for array in (symmetric, symmetric[0], half, half[:, :2], np.eye(1), np.zeros((0, 0)),
                  np.array([[1.0, np.nan], [np.nan, 1.0]]), np.ones((2, 2), bool)):  # fmt: skip
        again = roundtrip(array)
        assert (again.dtype, again.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(again, array)
    arrays = {}
    files._encode(symmetric, "covariance", arrays)
    assert sum(each.size for each in arrays.values()) == 3 * n * (n + 1) / 2


def test_all_of_the_model_comes_back(model, path):
    loaded = load(path)
    assert vars(loaded).keys() == vars(model).keys()
    assert loaded.report_ == model.report_
    assert loaded.columns_ == model.columns_
    assert loaded.output_names_ == model.output_names_
    assert list(loaded.feature_names_in_) == ["time", "rain"]
    np.testing.assert_array_equal(loaded.observations_.upper, model.observations_.upper)
    assert loaded.progress is False
    settings = {name: str(value) for name, value in model.get_params().items()}
    settings["progress"] = "False"
    assert {name: str(value) for name, value in clone(loaded).get_params().items()} == settings


def frame_of(make):
    """Times with a zone and words, in a data frame (of pandas, with an index of its own)."""
    package = pytest.importorskip(make)
    times = [t.replace(tzinfo=ZoneInfo("Europe/Copenhagen")) for t in HOURS.tolist()]
    columns = {
        "time": times,
        "weather": ["dry", "wet"] * 15,
        "a": [float(i % 7) for i in range(30)],
    }
    frame = package.table(columns) if make == "pyarrow" else package.DataFrame(columns)
    if make == "pandas":
        frame.index = [f"row {i}" for i in range(30)]
    return frame


@pytest.mark.parametrize("make", ["pandas", "polars", "pyarrow"])
def test_the_layout_and_the_keys_of_a_table_come_back(make):
    names = {"time": "time", "inputs": ["weather"], "capacity": {"a": 6}}
    read = frames.read_training(frame_of(make), ["a"], **names)
    assert roundtrip(read.layout) == read.layout
    before, after = read.rows.index.native(), roundtrip(read.rows).index.native()
    assert type(after) is type(before)
    assert str(after) == str(before)


@pytest.mark.slow
@pytest.mark.parametrize("make", ["pandas", "polars", "pyarrow"])
def test_a_model_of_a_table_answers_with_tables_after_loading(make, tmp_path):
    frame = frame_of(make)
    settings = {"heteroscedastic": False, "max_iterations": 1, "kernels": RBF("6h", columns="time")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = CensoredGP("poisson", **settings).fit(
            frame, outputs="a", time="time", inputs="weather", capacity=6
        )
    loaded = load(fitted.save(tmp_path / "frame.cgp"))
    assert loaded.predict(frame).equals(fitted.predict(frame))
    before, after = fitted.impute(), loaded.impute()
    assert type(after) is type(before)
    assert str(after) == str(before)


@pytest.mark.slow
def test_a_nugget_and_the_sites_of_cells_come_back(tmp_path):
    """Which imputation needs, and no other answer."""
    y = np.random.default_rng(0).poisson(3.0, 30).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = CensoredGP("poisson", max_iterations=3).fit(HOURS, y, censored=y > 4)
    loaded = load(files.save(fitted, tmp_path / "counts.cgp"))
    assert fitted.posterior_.model.priors["mean"].nugget is not None
    np.testing.assert_array_equal(loaded.impute(), fitted.impute())
    assert loaded.summary() == fitted.summary()
    assert "nugget" in fitted.summary()


def test_the_method_and_the_name_in_the_package_do_the_same(model, path, tmp_path):
    again = model.save(tmp_path / "again.cgp")
    assert again.read_bytes() == path.read_bytes()
    loaded = censored_gp.load(again)
    assert files.save(loaded, tmp_path / "third.cgp").read_bytes() == path.read_bytes()


@pytest.mark.slow
def test_another_program_predicts_the_same(model, path):
    code = (
        f"import numpy as np, censored_gp; model = censored_gp.load({str(path)!r})\n"
        f"new = {{'time': np.array({[str(t) for t in NEW['time']]}, 'datetime64[h]'),"
        f" 'rain': np.linspace(0, 1, 7)}}\n"
        "print(model.predict(new).tobytes().hex())"
    )
    folder = Path(censored_gp.__file__).parents[1]
    settings = os.environ | {"PYTHONPATH": str(folder)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                         check=True, env=settings)  # fmt: skip
    assert run.stdout.strip() == model.predict(NEW).tobytes().hex()


@pytest.mark.parametrize("name", likelihoods.FAMILIES)
def test_every_family_can_be_in_a_file(name):
    family = likelihoods.as_likelihood(name)
    assert roundtrip(family) == family
    first = family.parameters[0].name
    other = type(family)(**{first: "softplus"})
    assert roundtrip(other) == other


@pytest.mark.parametrize("link", links.LINKS.values())
def test_every_link_can_be_in_a_file(link):
    assert roundtrip(link()) == link()


def test_every_kernel_can_be_in_a_file():
    named = [getattr(kernels, name) for name in kernels.__all__]
    abstract = {"Kernel", "Stationary", "Combination"}
    concrete = {k.__name__ for k in named if isinstance(k, type)} - abstract
    assert concrete <= set(files._known_classes())
    each = (
        Periodic("7d", ["30min"], columns=["time"]) * RBF([1.0, 2.0], columns=(0, 1)),
        kernels.Linear() + kernels.Constant(2.0) + kernels.White(columns="day"),
        kernels.Block("1d", columns="time"),
        kernels.RationalQuadratic(0.3, alpha=2.0),
        # As fitted models of uncoupled outputs hold them.
        *in_blocks((kernels.RationalQuadratic(0.3), RBF(1.0) * kernels.Constant(2.0)), 2),
        *(kernels.Matern12(), kernels.Matern32(1.0), kernels.Matern52("2h")),
    )
    for kernel in each:
        assert repr(roundtrip(kernel)) == repr(kernel)


def test_values_keep_their_kind():
    for value in (None, True, 3, "text", 0.1, [1, (2.5, "a")], {"a": 1, 2: ("b", None)}):
        assert roundtrip(value) == value
        assert type(roundtrip(value)) is type(value)
    assert str(roundtrip((np.inf, -np.inf, np.nan))) == "(inf, -inf, nan)"
    for value in (np.float64(0.1), np.bool_(True), np.datetime64("2024-01-01T05", "h")):
        assert roundtrip(value) == value
        assert roundtrip(value).dtype == value.dtype
    for array in (np.empty((0, 2)), np.array(1.5), np.eye(3)[:, ::2], np.array(["a", "bc"])):
        np.testing.assert_array_equal(roundtrip(array), array)
        assert roundtrip(array).shape == array.shape


def test_a_posterior_of_draws_can_be_in_a_file(model):
    posterior = model.posterior_
    draws = {role: np.ones((5, *w.mean.shape)) for role, w in posterior.weights.items()}
    own = (posterior.model, posterior.inducing, posterior.weights, posterior.jitter)
    drawn = DrawnPosterior(*own, draws=draws)
    again = roundtrip(drawn)
    assert type(again) is DrawnPosterior
    assert eqx.tree_equal(
        *(eqx.filter(x, eqx.is_array) for x in (again.draws, drawn.draws)), typematch=False
    )


def with_settings(model, **settings):
    """The fitted model with other settings."""
    other = clone(model).set_params(**settings)
    return vars(other).update({k: v for k, v in vars(model).items() if k.endswith("_")}) or other


def test_a_kernel_of_ones_own_is_known_by_being_defined(model, tmp_path):
    class Rough(kernels.Matern12):
        """Rougher than any."""

    path = with_settings(model, kernels=Rough(2.0)).save(tmp_path / "own.cgp")
    assert repr(load(path).kernels) == "Rough(lengthscale=2)"

    def rename(content):
        content["state"]["kernels"]["class"] = "Rougher"

    with pytest.raises(ValueError, match=r"'Rougher' is not known here.*import it"):
        load(forged(path, rename))


def test_no_class_takes_the_name_of_one_of_the_package(model, tmp_path):
    rival = type("RBF", (kernels.Matern12,), {})
    with pytest.raises(ValueError, match="kernels is of the class RBF"):
        with_settings(model, kernels=rival(2.0)).save(tmp_path / "own.cgp")
    assert not list(tmp_path.iterdir())
    assert type(roundtrip(RBF(1.0))) is RBF


@pytest.mark.parametrize("kind", [censored_gp.HMOCGP, censored_gp.NCGP])
def test_a_preset_comes_back_as_itself(model, kind, tmp_path):
    preset = kind(rank=2)
    vars(preset).update({k: v for k, v in vars(model).items() if k.endswith("_")})
    loaded = load(preset.save(tmp_path / "m"))
    assert type(loaded) is kind
    assert loaded.get_params() == preset.get_params()
    assert loaded.use_censoring is kind.use_censoring
    assert loaded.elbo_ == model.elbo_


def test_settings_that_no_file_can_hold_are_named(model, tmp_path):
    other = load(files.save(model, tmp_path / "model.cgp"))
    other.set_params(random_state=np.random.RandomState(0))
    with pytest.raises(ValueError, match=r"random_state is .*set_params\(random_state=None\)"):
        files.save(other, tmp_path / "other.cgp")


def test_only_fitted_models_are_saved(tmp_path):
    with pytest.raises(ValueError, match="fitted"):
        files.save(CensoredGP(), tmp_path / "model.cgp")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.9999])
def test_a_file_that_was_cut_short_is_refused(path, share):
    raw = path.read_bytes()
    path.write_bytes(raw[: int(share * len(raw))])
    with pytest.raises(ValueError, match=r"model\.cgp is not a model file .* cut short"):
        load(path)


def test_a_file_with_any_byte_changed_is_refused(path):
    raw = path.read_bytes()
    for place in np.random.default_rng(0).integers(0, len(raw), 60):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 4]) + raw[place + 1 :])
        with pytest.raises(ValueError, match=r"model\.cgp"):
            load(path)


@pytest.mark.parametrize("content", [b"", b"text\n" * 100, b"\x80\x04\x95", b"\0" * 64])
def test_a_file_that_is_not_ours_is_refused(tmp_path, content):
    path = tmp_path / "other.bin"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a model file of censored-gp"):
        load(path)
    path.write_bytes(to_bytes({"a": np.ones(3)}, {"other": "program"}))
    with pytest.raises(ValueError, match="not a model file of censored-gp"):
        load(path)


def test_a_file_of_a_newer_version_is_refused_before_it_is_read(path, monkeypatch):
    newer = header_of(path) | {"version": files.VERSION + 1, "package": "9.9", "content": "?"}
    monkeypatch.setattr(files, "_decode", None)
    said = rf"written by censored-gp 9\.9 in version {files.VERSION + 1}"
    with pytest.raises(ValueError, match=said):
        load(write(path, newer))


def forged(path, change):
    """The file with another content and a checksum that is right."""
    arrays, header = from_bytes(path.read_bytes()), header_of(path)
    state = json.loads(header["content"])
    change(state)
    header["content"] = json.dumps(state)
    header["sha256"] = files._digest(header["content"], arrays)
    return write(path, header, arrays)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernels", {"$": "object", "class": "os.system", "fields": {"command": "true"}}),
        ("kernels", {"$": "object", "class": "system", "fields": {}}),
        ("kernels", {"$": "object", "class": "RBF", "fields": {"lengthscale": -1.0}}),
        ("kernels", {"$": "eval", "value": "1"}),
        ("units_", {"$": "array", "type": "<f8", "name": "absent", "scalar": False}),
        ("predict", 1),
        ("_parameter_constraints", 1),
        ("__class__", 1),
    ],
)
def test_a_forged_file_runs_nothing_and_is_refused(path, name, value):
    with pytest.raises(ValueError, match="does not fit together"):
        load(forged(path, lambda content: content["state"].update({name: value})))


def test_a_bottomless_file_is_refused(path):
    header = header_of(path)
    header["content"] = '{"class": "CGP", "state": {"rank": ' + "[" * 10**5 + "]" * 10**5 + "}}"
    arrays = from_bytes(path.read_bytes())
    header["sha256"] = files._digest(header["content"], arrays)
    with pytest.raises(ValueError, match="does not fit together"):
        load(write(path, header, arrays))


def test_a_file_that_is_not_there_is_the_disks_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.cgp")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


def test_what_was_there_stays_when_writing_fails(model, path, monkeypatch):
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        files.save(model, path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["model.cgp"]


def test_replacing_keeps_mode_and_links(tmp_path):
    target, link = tmp_path / "real.txt", tmp_path / "link.txt"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    with files.replacing(link) as draft:
        draft.write_text("new")
    assert target.read_text() == "new"
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_device_is_written_to_as_it_is():
    with files.replacing(os.devnull) as draft:
        draft.write_text("gone")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("name", ["Pipeline", "RBF", 3])
def test_a_file_of_no_estimator_is_refused(path, name):
    with pytest.raises(ValueError, match="does not fit together"):
        load(forged(path, lambda content: content.update({"class": name})))
