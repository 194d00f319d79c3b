"""Fleets: a model for each group, wherever its rows come from, in any order, and after a crash."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from pyarrow import parquet
from sklearn.base import clone

from censored_gp import DataError, Fleet, fit_many, group_outputs
from censored_gp.data.files import File
from censored_gp.estimator.fleet import BATCH_CELLS, PILOTS, Group, make_batches
from censored_gp.inference.natural import fit as natural
from support.shops import HOURS, fit_shops, model, shops

ANSWERS = ("imputed", "lost_demand", "forecast")
TESTS = Path(__file__).resolve().parents[1]


def same(first, second, tolerance=0.0, kinds=ANSWERS):
    """Whether two fleets have the same answers, whatever the order and the make of their tables."""
    for kind in kinds:
        a, b = (Fleet(f.folder, "pandas").read(kind) for f in (first, second))
        keys = [name for name in a.columns if a[name].dtype.kind not in "fc"]
        a, b = (f.astype(dict.fromkeys(keys, str)).sort_values(keys) for f in (a, b))
        assert (a[keys].to_numpy() == b[keys].to_numpy()).all()
        numbers = [name for name in a.columns if name not in keys]
        assert_allclose(a[numbers].to_numpy(), b[numbers].to_numpy(), tolerance, tolerance)


@pytest.fixture(scope="module")
def frame():
    return shops()


@pytest.fixture(scope="module")
def fleet(frame, tmp_path_factory):
    return fit_shops(frame, tmp_path_factory.mktemp("fleet"), n_jobs=1)


def test_every_group_is_a_row_of_the_summary(fleet, frame):
    rows = fleet.read()
    assert sorted(rows["shop"]) == sorted(frame["shop"].unique())
    assert set(rows["status"]) == {"converged"}
    assert (rows["rows"] == HOURS).all()
    assert rows["censored"].sum() == frame["out"].sum()
    assert ((rows["lost_low"] < rows["lost"]) & (rows["lost"] < rows["lost_high"])).all()
    assert (rows["seconds"] > 0).all()
    assert rows["words"].str.contains("converged").all()
    assert "5 converged" in str(fleet)


def test_the_answers_are_those_of_a_model_of_the_group(fleet, frame):
    (pilot,) = (fleet.folder / "pilots").glob("*.cgp")
    name = parquet.read_table(fleet.folder / "summary" / f"{pilot.stem}.parquet")["shop"][0].as_py()
    own = frame[frame["shop"] == name]
    alone = model().fit(own, outputs="sold", time="time", censored="out")
    found = fleet.read("imputed").query("shop == @name")
    cells = own["out"].to_numpy()
    low, high = alone.impute_interval(0.8)
    assert (found["time"].to_numpy() == own["time"].to_numpy()[cells]).all()
    assert (found["at_least"].to_numpy() == own["sold"].to_numpy()[cells]).all()
    for column, table in (("value", alone.impute()), ("low", low), ("high", high)):
        assert_allclose(found[column], table["sold"].to_numpy()[cells])
    lost = fleet.read("lost_demand").query("shop == @name")
    assert_allclose(lost["lost"], alone.lost_demand("output", 0.8, 50)["lost"])
    ahead = fleet.read("forecast").query("shop == @name")
    assert_allclose(ahead["sold"], alone.forecast(3, probability=0.8)["sold"])


def test_other_groups_start_from_the_medians(frame):
    own = frame[frame["shop"] == "a"]
    columns = {"outputs": "sold", "time": "time", "censored": "out"}
    # A prior of the hyper-parameters would be around the start, and so differ.
    fixed = model().set_params(hyperparameters="fixed")
    fitted = clone(fixed).fit(own, **columns)
    kernels = {role: lmc.kernels for role, lmc in fitted.posterior_.model.priors.items()}
    kernels = {role: tuple(_first_block(k) for k in own) for role, own in kernels.items()}
    again = clone(fixed).fit(own, start=kernels, **columns)
    assert again.report_.trace[0] > fitted.report_.trace[0]
    assert again.elbo_ == pytest.approx(fitted.elbo_, abs=0.1)


def _first_block(kernel):
    import jax

    return jax.tree.map(lambda leaf: leaf[0], kernel)


def test_lists_files_and_long_tables_give_the_same(tmp_path):
    path, text, frame = tmp_path / "all.parquet", tmp_path / "all.csv", shops("ab")
    fleet = fit_shops(frame, tmp_path / "frame")
    # Not sorted by shop, and shops in several row groups.
    mixed = frame.sort_values("time", kind="stable")
    parquet.write_table(pa.Table.from_pandas(mixed, preserve_index=False), path, row_group_size=20)
    same(fleet, fit_shops(path, tmp_path / "parquet"), 1e-8)
    same(fleet, fit_shops([path], tmp_path / "list"), 1e-8)
    frame.to_csv(text, index=False)
    same(fleet, fit_shops(text, tmp_path / "csv"), 1e-8, ANSWERS[:2])
    tables = {name: own.drop(columns="shop") for name, own in frame.groupby("shop")}
    found = fit_shops(tables, tmp_path / "dict", by=None)
    assert_allclose(found.read("imputed")["value"].sum(), fleet.read("imputed")["value"].sum())
    long = mixed.assign(product="only")
    found = fit_shops(long, tmp_path / "long", series="product")
    assert set(found.read("imputed")["product"]) == {"only"}
    assert_allclose(found.read("imputed")["value"].sum(), fleet.read("imputed")["value"].sum())


def test_limits_in_text_are_bounds_with_either_decimal_sign_and_in_some_of_the_files(tmp_path):
    frame, names = shops("ab").drop(columns="out"), ["shop", "time", "sold"]
    low = (frame["shop"] == "a") & (frame["sold"] < 4.25)
    words = frame["sold"].map(repr).mask(low, "<4.25")

    def fitted(data, folder):
        columns = {"by": "shop", "outputs": "sold", "time": "time", "n_jobs": 1}
        return fit_many(data, model(), save=tmp_path / folder, progress=False, **columns)

    whole = fitted(frame.assign(sold=words), "whole")
    filled = whole.read("imputed")
    assert 0 < len(filled) == low.sum()
    assert (filled["at_most"] == 4.25).all()
    for sign, folder in ((".", "points"), (",", "commas")):
        written, files = words.str.replace(".", sign), []
        for name, own in frame.assign(sold=written).groupby("shop"):
            own.to_csv(path := tmp_path / f"{name}.csv", sep=";", index=False)
            files.append(File(path, ";", decimal=sign).read(names))
        same(whole, fitted(files, folder), 1e-8, ["imputed"])


def test_a_group_that_fails_is_a_row_with_its_reason_and_is_filled(frame, tmp_path):
    def fussy(task, settings):
        if len(task.inputs) == HOURS - 1:
            raise FloatingPointError("no shop with 26\nrows")
        return natural(task)

    frame = pd.concat([frame[frame["shop"] == "a"], frame[frame["shop"] == "b"][1:],
                       frame[frame["shop"] == "c"].assign(time=pd.NaT)])  # fmt: skip
    found = fit_shops(frame, tmp_path, engine=fussy)
    rows = found.read().set_index("shop")
    assert rows["status"].to_dict() == {"a": "converged", "b": "fallback", "c": "failed"}
    assert "no shop with 26 rows" in rows["words"]["b"]
    assert "no shop with 26 rows" in str(found)
    assert "time" in rows["words"]["c"]
    own = frame[frame["shop"] == "b"]
    filled = found.read("imputed").query("shop == 'b'")
    assert (filled["value"] >= filled["at_least"]).all()
    exact = own[~own["out"]]
    again = exact[exact["time"] == filled["time"].iloc[0] + pd.Timedelta("7D")]["sold"]
    typical = again.iloc[0] if len(again) else exact["sold"].mean()
    assert filled["value"].iloc[0] == pytest.approx(max(typical, filled["at_least"].iloc[0]))
    assert filled["low"].isna().all()
    assert set(found.read("imputed")["shop"]) == {"a", "b"}


def test_finished_batches_are_not_repeated_and_the_rest_comes_out_the_same(frame, tmp_path):
    first = fit_shops(frame, tmp_path)
    before = {kind: first.read(kind) for kind in ANSWERS}
    files = sorted((tmp_path / "summary").glob("*.parquet"))
    stamp = files[0].stat().st_mtime_ns
    files[-1].unlink()
    (tmp_path / "imputed" / ".half.part").write_text("cut off")
    again = fit_shops(frame, tmp_path)
    assert files[0].stat().st_mtime_ns == stamp
    assert files[-1].exists()
    assert not (tmp_path / "imputed" / ".half.part").exists()
    for kind in ANSWERS:
        pd.testing.assert_frame_equal(before[kind], again.read(kind))


def test_a_folder_of_other_data_or_settings_is_refused(fleet, frame):
    with pytest.raises(ValueError, match="save"):
        fit_shops(frame, fleet.folder, samples=51)
    with pytest.raises(ValueError, match="save"):
        fit_shops(frame[:-1], fleet.folder)


def test_bad_arguments_are_refused(frame, tmp_path):
    with pytest.raises(TypeError, match="outputs"):
        fit_many(frame, by="shop", save=tmp_path, time="time")
    with pytest.raises(TypeError, match="sensored"):
        fit_many(frame, by="shop", save=tmp_path, outputs="sold", sensored="out")
    with pytest.raises(ValueError, match="periods"):
        fit_many(frame, by="shop", save=tmp_path, outputs="sold", periods=2, inputs=["out"])
    with pytest.raises(ValueError, match="by"):
        fit_many(frame, save=tmp_path, outputs="sold", time="time")
    with pytest.raises(DataError, match="store"):
        fit_shops(frame, tmp_path, by="store")
    with pytest.raises(DataError, match="shop"):
        fit_shops(frame.assign(shop=frame["shop"].where(frame["shop"] != "a")), tmp_path)
    with pytest.raises(ValueError, match="kind"):
        Fleet(tmp_path).read("imputation")


def test_progress_is_a_line_without_a_terminal(frame, tmp_path, capsys):
    fit_shops(frame[frame["shop"] < "c"], tmp_path, progress=True)
    said = capsys.readouterr().err.strip().splitlines()
    assert "failed" in said[-1]
    assert "0.0 min left" in said[-1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A worker stopped")
def test_worker_processes_find_the_same(fleet, frame, tmp_path):
    with joblib.parallel_config("loky"):
        found = fit_shops(frame, tmp_path, n_jobs=2)
    same(fleet, found, 1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_finds_the_same(fleet, frame, tmp_path):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        found = fit_shops(frame, tmp_path, n_jobs=None)
    same(fleet, found, 1e-5)


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_to_the_same_result(tmp_path):
    code = "import sys; from support.shops import fit_shops, shops; "
    code += "fit_shops(shops('abcdefghijkl'), sys.argv[1], n_jobs=2)"
    paths = [str(TESTS), str(TESTS.parent / "src")]
    settings = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}

    def run(folder):
        return subprocess.Popen([sys.executable, "-c", code, folder], env=settings)

    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process, summary = run(killed), killed / "summary"
    while not list(summary.glob("*.parquet")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = {path: path.stat().st_mtime_ns for path in summary.glob("*.parquet")}
    assert run(killed).wait() == 0
    assert run(whole).wait() == 0
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert len(list(summary.glob("*.parquet"))) > len(done)
    same(Fleet(killed), Fleet(whole))
    assert not list(killed.glob("**/.*.part"))


def test_batches_hold_every_group_once_and_are_of_one_shape():
    sizes = [(900, 1), (1440 * 30, 30), (905, 1), (1440 * 9, 9), (64, 2)] * 20
    groups = [Group(k, rows, outputs) for k, (rows, outputs) in enumerate(sizes)]
    pilots, batches = make_batches(groups)
    assert pilots == PILOTS
    assert sorted(group.name for batch in batches for group in batch) == list(range(100))
    assert all(len(batch) == 1 for batch in batches[:pilots])
    for batch in batches:
        assert len({group.shape for group in batch}) == 1
        assert len(batch) == 1 or sum(group.rows for group in batch) <= BATCH_CELLS
    assert make_batches(groups) == (pilots, batches)


def test_correlated_outputs_are_grouped():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(200, 3))
    values = np.repeat(base, 3, axis=1) + 0.1 * rng.normal(size=(200, 9))
    order = rng.permutation(9)
    groups = group_outputs(values[:, order], most=3)
    assert sorted(sorted(order[d] // 3 for d in group) for group in groups) == [
        [k] * 3 for k in range(3)
    ]
    assert sorted(map(len, group_outputs(values, most=4))) == [1, 4, 4]
    named = group_outputs(pd.DataFrame(values, columns=list("abcdefghi")), most=9)
    assert named == [list("abcdefghi")]
    with pytest.raises(ValueError, match="most"):
        group_outputs(values, most=0)
