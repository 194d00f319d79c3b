"""Runs: each a row, resumed, in order or in a pool; a failure is a row too."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from censored_gp.paper import runs
from censored_gp.paper.runs import Study, complete, good, read_runs

CALLS = []


def square(settings):
    CALLS.append(settings["x"])
    if settings["x"] == 13:
        raise ValueError("13 is\nunlucky")
    return {"square": settings["x"] ** 2, "threads": float(os.environ.get("OMP_NUM_THREADS", 0))}


STUDY = Study("squares", ("x",), ("square", "threads"), square)


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def wanted(*numbers):
    return [{"x": x} for x in numbers]


def test_rows_come_in_the_order_wanted_with_how_it_went(tmp_path):
    rows = complete(STUDY, wanted(3, 2), tmp_path, jobs=1)
    assert [row["square"] for row in rows] == [9.0, 4.0]
    assert [row["x"] for row in rows] == ["3", "2"]
    assert all(row["seconds"] >= 0 and row["version"] and row["finished"] for row in rows)


def test_what_is_in_the_file_is_not_run_again(tmp_path):
    complete(STUDY, wanted(1, 2), tmp_path, jobs=1)
    rows = complete(STUDY, wanted(1, 2, 3, 3), tmp_path, jobs=1)
    assert CALLS == [1, 2, 3]
    assert [row["square"] for row in rows] == [1.0, 4.0, 9.0, 9.0]


def test_a_failure_is_recorded_and_tried_again(tmp_path):
    rows = complete(STUDY, wanted(13, 2), tmp_path, jobs=1)
    assert rows[0]["error"] == "ValueError: 13 is unlucky"
    assert [row["x"] for row in good(rows)] == ["2"]
    complete(STUDY, wanted(13, 2), tmp_path, jobs=1)
    assert CALLS == [13, 2, 13]


def test_a_file_cut_off_in_a_line_is_mended(tmp_path):
    complete(STUDY, wanted(1, 2), tmp_path, jobs=1)
    path = STUDY.path(tmp_path)
    path.write_bytes(path.read_bytes()[:-30])
    assert [row["x"] for row in read_runs(STUDY, tmp_path)] == ["1"]
    rows = complete(STUDY, wanted(1, 2), tmp_path, jobs=1)
    assert [row["square"] for row in rows] == [1.0, 4.0]
    assert CALLS == [1, 2, 2]


def test_an_interrupted_study_keeps_what_is_done(tmp_path):
    def stop(settings):
        if settings["x"] == 2:
            raise KeyboardInterrupt
        return square(settings)

    with pytest.raises(KeyboardInterrupt):
        complete(Study("squares", *STUDYS, stop), wanted(1, 2, 3), tmp_path, jobs=1)
    assert [row["x"] for row in read_runs(STUDY, tmp_path)] == ["1"]


STUDYS = (STUDY.settings, STUDY.results)


@pytest.mark.slow
def test_workers_of_a_pool_have_one_thread_each(tmp_path):
    before = os.environ.get("OMP_NUM_THREADS")
    # Workers find the function by its module's name, so it must be one that can be imported.
    study = Study("threads", ("number",), ("threads",), threads_of_worker())
    rows = complete(study, [{"number": n} for n in range(3)], tmp_path, jobs=2)
    assert [row["error"] for row in rows] == [""] * 3
    assert {row["threads"] for row in rows} == {1.0}
    assert os.environ.get("OMP_NUM_THREADS") == before


def threads_of_worker():
    from support.workers import threads

    return threads


@pytest.mark.slow
def test_a_worker_that_dies_does_not_end_the_study(tmp_path):
    from support.workers import die

    study = Study("deaths", ("number",), (), die)
    rows = complete(study, [{"number": n} for n in range(2)], tmp_path, jobs=2)
    assert len(rows) == 2
    assert all("BrokenProcessPool" in row["error"] for row in rows)


@pytest.mark.slow
def test_a_study_goes_on_after_a_worker_has_died(tmp_path):
    from support.workers import die_at_three

    study = Study("deaths", ("number",), ("number_again",), die_at_three)
    rows = complete(study, [{"number": n} for n in range(12)], tmp_path, jobs=2)
    failed = [int(row["number"]) for row in rows if row["error"]]
    # What waited in the same process is lost with it, and tried again the next time.
    assert 3 in failed
    assert len(failed) <= 2
    assert len(good(rows)) == 12 - len(failed)


@pytest.mark.slow
def test_a_worker_does_runs_of_one_program_in_a_row(tmp_path):
    from support.workers import who

    study = Study("who", ("program", "draw"), ("process",), who, varied=("draw",))
    runs = [{"program": p, "draw": d} for d in range(6) for p in "ab"]
    rows = complete(study, runs, tmp_path, jobs=2)
    # The last ones may be taken over by a worker that has nothing left to do.
    early = [r for r in rows if int(r["draw"]) < 2]
    processes = {p: {r["process"] for r in early if r["program"] == p} for p in "ab"}
    assert len(processes["a"]) == len(processes["b"]) == 1
    assert processes["a"] != processes["b"]


class Hand:
    """A worker that finishes one run whenever it is told to."""

    def __init__(self):
        self.own, self.under_way, self.done = [], {}, []

    def take(self, run):
        self.under_way[object()] = run

    def finish(self):
        if self.under_way:
            self.done.append(self.under_way.pop(next(iter(self.under_way)))["x"])


@pytest.mark.parametrize("slow", [0, 1])
def test_a_worker_without_runs_takes_over_half_of_what_another_has_left(slow):
    hands, stretches = [Hand(), Hand()], [wanted(*range(20, 24)), wanted(*range(10))]
    # Who is slow has the long one.
    waiting = iter(stretches[:: 1 if slow else -1])
    for turn in range(40):
        if not runs._hand_out(hands, waiting):
            break
        for place, hand in enumerate(hands):
            if place != slow or turn % 3 == 0:
                hand.finish()
    long, short = hands[slow].done, hands[1 - slow].done
    assert sorted(long + short) == [*range(10), *range(20, 24)]
    # Each does what it was given first, one after the other; then the quick one helps.
    assert long[:2] == [0, 1]
    assert short[:4] == [20, 21, 22, 23]
    assert len(short) >= 7


def test_the_last_run_that_is_kept_is_taken_over_too():
    busy, idle = Hand(), Hand()
    busy.own = wanted(1)
    assert runs._half_of_most([busy, idle]) == wanted(1)
    assert busy.own == []


def test_a_file_with_other_columns_is_refused(tmp_path):
    complete(STUDY, wanted(1), tmp_path, jobs=1)
    other = Study("squares", ("x",), ("square",), square)
    with pytest.raises(ValueError, match=r"squares.csv: found the columns x, square, threads"):
        complete(other, wanted(2), tmp_path, jobs=1)


def test_no_file_means_no_runs():
    assert read_runs(STUDY, Path("nowhere")) == []


STUDY_THAT_WAITS = """
from pathlib import Path
from support.workers import tell_who_and_wait
from censored_gp.paper.runs import Study, complete

if __name__ == "__main__":
    study = Study("waits", ("file",), ("waited",), tell_who_and_wait)
    complete(study, [{"file": f"{n}.pid"} for n in range(2)], Path("."), jobs=2)
"""


@pytest.mark.slow
def test_workers_end_with_the_study_that_was_killed(tmp_path):
    script = tmp_path / "study.py"
    script.write_text(STUDY_THAT_WAITS)
    own = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)}
    study = subprocess.Popen([sys.executable, str(script)], cwd=tmp_path, env=own)
    files = [tmp_path / f"{n}.pid" for n in range(2)]
    assert eventually(lambda: all(f.exists() and f.read_text() for f in files))
    study.kill()
    study.wait()
    workers = [int(f.read_text()) for f in files]
    assert eventually(lambda: not any(is_running(worker) for worker in workers))


def eventually(condition, seconds=60):
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # A process that has ended stays in the list until someone asks how.
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or "Z" not in state.read_text().rsplit(")", 1)[1][:3]


@pytest.mark.parametrize(("share", "forgotten"), [(0.0, 2), (1.0, 0)])
def test_compiled_programs_are_forgotten_when_pieces_of_memory_run_short(
    tmp_path, monkeypatch, share, forgotten
):
    times = []
    monkeypatch.setattr(runs, "MOST_PIECES", share)
    monkeypatch.setattr(runs, "MANY_PROGRAMS", 0 if share == 0.0 else 100)
    monkeypatch.setattr(runs, "_programs", set())
    monkeypatch.setattr(runs, "_forget_programs", lambda: times.append(len(runs._programs)))
    complete(STUDY, wanted(3, 4), tmp_path, jobs=1)
    assert len(times) == forgotten
