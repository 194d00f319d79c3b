"""Runs of a study: each is a row, a study resumes, and a failure is a row too."""

from pathlib import Path

import pytest

from reproduction import study as module
from reproduction.study import Study, complete, finished
from support.workers import threads

CALLS = []


def square(settings):
    CALLS.append(settings["x"])
    if settings["x"] == 13:
        raise ValueError("13 is\nunlucky")
    return {"square": settings["x"] ** 2}


STUDY = Study("squares", ("x",), ("square",), square)


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def wanted(*numbers):
    return [{"x": x} for x in numbers]


def test_a_row_has_the_settings_the_results_and_the_outcome(tmp_path):
    rows = complete(STUDY, wanted(3, 2), tmp_path, jobs=1)
    assert list(rows["x"]) == ["3", "2"]
    assert list(rows["square"]) == [9.0, 4.0]
    assert (rows["seconds"] >= 0).all()
    assert rows["version"].all()
    assert rows["finished"].str.endswith("Z").all()


def test_finished_runs_are_skipped(tmp_path):
    complete(STUDY, wanted(1, 2), tmp_path, jobs=1)
    rows = complete(STUDY, wanted(2, 3, 3), tmp_path, jobs=1)
    assert CALLS == [1, 2, 3]
    assert list(rows["square"]) == [4.0, 9.0], "those that were wanted, and no others"


def test_a_failed_run_is_a_row_with_its_reason_and_is_tried_again(tmp_path):
    rows = complete(STUDY, wanted(13, 2), tmp_path, jobs=1)
    assert list(rows["error"]) == ["ValueError: 13 is unlucky", ""]
    assert list(finished(rows)["x"]) == ["2"]
    again = complete(STUDY, wanted(13, 2), tmp_path, jobs=1)
    assert CALLS == [13, 2, 13]
    assert len(again) == 2, "the last row of a run counts"


def test_a_file_that_was_cut_off_in_a_line_is_mended(tmp_path):
    complete(STUDY, wanted(1, 2), tmp_path, jobs=1)
    path = STUDY.path(tmp_path)
    path.write_bytes(path.read_bytes()[:-30])
    assert list(STUDY.read(tmp_path)["x"]) == ["1"]
    rows = complete(STUDY, wanted(1, 2), tmp_path, jobs=1)
    assert list(rows["square"]) == [1.0, 4.0]
    assert CALLS == [1, 2, 2]


def test_an_interrupted_study_keeps_what_is_done(tmp_path):
    def stop(settings):
        if settings["x"] == 2:
            raise KeyboardInterrupt
        return square(settings)

    interrupted = Study("squares", STUDY.settings, STUDY.results, stop)
    with pytest.raises(KeyboardInterrupt):
        complete(interrupted, wanted(1, 2, 3), tmp_path, jobs=1)
    assert list(STUDY.read(tmp_path)["x"]) == ["1"]


def test_a_file_with_other_columns_is_refused(tmp_path):
    complete(STUDY, wanted(1), tmp_path, jobs=1)
    other = Study("squares", ("x",), ("root",), square)
    with pytest.raises(ValueError, match=r"squares.csv.* x, square.* x, root"):
        complete(other, wanted(2), tmp_path, jobs=1)


def test_no_file_means_no_rows():
    assert STUDY.read(Path("nowhere")).empty


def test_compiled_programs_are_dropped_now_and_then(tmp_path, monkeypatch):
    dropped = []
    monkeypatch.setattr(module, "RUNS_PER_CACHE", 2)
    monkeypatch.setattr(module.jax, "clear_caches", lambda: dropped.append(1))
    complete(STUDY, wanted(*range(6)), tmp_path, jobs=1)
    assert len(dropped) == 3


@pytest.mark.slow
def test_workers_have_one_thread_each(tmp_path, monkeypatch):
    for name in module.ONE_THREAD:
        monkeypatch.setenv(name, module.ONE_THREAD[name])
    pool = Study("threads", ("number",), ("threads",), threads)
    rows = complete(pool, [{"number": n} for n in range(3)], tmp_path, jobs=2)
    assert not rows["error"].any()
    assert set(rows["threads"]) == {1.0}
