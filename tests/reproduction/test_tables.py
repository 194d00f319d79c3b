"""Tables and figures hold what the runs say; the page has what there are runs of."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from reproduction import __main__, areas, figures, new_york, synthetic, tables
from reproduction.models import MODELS
from reproduction.page import write_page
from reproduction.study import Study, complete

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"


def made_up(study, wanted, value, folder):
    """Write the rows of runs that nobody has done; every result is the same value."""

    def pretended(run):
        return dict.fromkeys(study.results, value(run))

    made = Study(study.name, study.settings, study.results, pretended)
    return complete(made, wanted, folder, jobs=1, progress=False)


def cells(table, start):
    line = next(line for line in table.splitlines() if line.startswith(f"|{start}|"))
    return line.strip("|").split("|")


def test_a_mean_has_the_standard_error_of_the_mean():
    values = np.random.default_rng(0).normal(size=20)
    mean, error = tables.mean_se([*values, np.nan], 6).split("±")
    assert float(mean) == pytest.approx(values.mean(), abs=1e-6)
    assert float(error) == pytest.approx(values.std(ddof=1) / np.sqrt(20), abs=1e-6)
    assert tables.mean_se([np.inf, 1.0]) == "inf", "an impossible truth is not forgiven"


def test_table_1_has_means_and_paired_differences(tmp_path):
    def value(run):
        # All models share what a draw does; HMOCGP is ahead of MOCGP by 9 and 11.
        shift = {"HMOCGP": 0.0, "MOCGP": 9.0 + 2.0 * (run["draw"] == 101)}
        return 100.0 * run["draw"] + shift.get(run["model"], 50.0)

    rows = made_up(synthetic.STUDY, synthetic.runs(2, [synthetic.TABLE_1]), value, tmp_path)
    table, said = tables.table1(rows)
    assert cells(table, "HMOCGP")[1:3] == ["51.32", "**10050.0±50.0**"]
    assert cells(table, "MOCGP")[1:3] == ["64.59", "10060.0±51.0"]
    assert "HMOCGP is ahead of MOCGP by 10.0±1.0" in said
    assert "not significant" in said, "t with one degree of freedom"
    assert tables.table1(rows[rows["engine"] == "svi"]) == ("", "")


def test_a_run_of_one_output_serves_all_columns_of_table_2(tmp_path):
    runs = synthetic.runs(2, synthetic.TABLE_2.values())
    rows = made_up(synthetic.STUDY, runs, lambda r: float(r["output_1"] == "block"), tmp_path)
    assert len(rows[rows["model"] == "CGP"]) == 2 * 2
    line = cells(tables.table2(rows)[0], "CGP")
    assert line == ["CGP", "88.89", "1.0±0.0", "32.36", "0.0±0.0", "32.36", "0.0±0.0", "88.89",
                    "1.0±0.0"]  # fmt: skip


def test_table_3_averages_folds_before_pairs(tmp_path):
    runs = [
        {"data": "hubs", "pair": pair, "draw": 0, "intensity": 0.5, "fold": fold, "model": "CGP",
         "engine": "natural"}
        for pair in ("a+b", "c+d") for fold in range(2)
    ]  # fmt: skip
    score = {("a+b", 0): 0.1, ("a+b", 1): 0.3, ("c+d", 0): 0.4, ("c+d", 1): np.nan}
    rows = made_up(areas.STUDY, runs, lambda r: score[r["pair"], r["fold"]], tmp_path)
    assert cells(tables.table3(rows, "r2"), "CGP")[1:4] == ["0.56", "0.55", "0.55"]
    assert cells(tables.table3(rows, "r2"), "CGP")[8] == "**0.300±0.100**"


HALF = ["0.500±0.000"] * 2


def heeds(run):
    return run["model"] in ("HMOCGP", "MOCGP")


@pytest.fixture
def bikes(tmp_path, data_folder):
    """Heeding the censoring makes good 3/5 of its cost under the rule, all of it under limits."""

    def value(run):
        if run["data"] == "truth" or (run["data"] == "limits" and heeds(run)):
            return 0.7
        return 0.5 if heeds(run) else 0.2

    return made_up(new_york.STUDY, new_york.runs(2), value, tmp_path)


def test_gaps_tell_what_is_made_good(bikes):
    lines = tables.gaps(bikes).splitlines()[2:]
    assert len(lines) == 4 * 3
    for line in lines:
        assert line.endswith("|0.700|0.200|0.500|0.60|0.200|0.700|1.00|")
    assert lines[-1].startswith(f"|{new_york.MORE_STATIONS} more|negative binomial HMOCGP|")


def test_the_corrected_partner_and_further_stations_are_no_part_of_table_4(bikes):
    others = bikes.copy()
    others.loc[others["partner"] != "published", "r2"] = 99.0
    published = tables.only(others, partner="published")
    assert "99" not in tables.table4(published) + tables.references(published)
    assert cells(tables.table4(published), "poisson MOCGP")[1:4] == ["0.262", *HALF]


def test_a_champion_that_is_behind_is_named(bikes):
    behind = bikes.copy()
    chosen = (behind["model"] == "CGP") & (behind["station"] == "379")
    chosen &= (behind["kernels"] == "paper") & (behind["family"] == "poisson")
    assert tables.behind(behind) == ""
    behind.loc[chosen & (behind["data"] == "observed"), "r2"] = [0.60, 0.61]
    behind.loc[chosen & (behind["data"] == "truth"), "r2"] = 0.75
    lines = tables.behind(behind).splitlines()[2:]
    assert lines == ["|379|paper's kernels|poisson MOCGP|CGP|0.105±0.005|0.050|"]


def test_failed_runs_do_not_count_and_are_counted(tmp_path):
    def value(run):
        if run["draw"] == 100:
            raise ValueError("no")
        return 5.0

    rows = made_up(synthetic.STUDY, synthetic.runs(2, [synthetic.TABLE_1]), value, tmp_path)
    assert cells(tables.effort({"synthetic": rows}), "`synthetic.csv`")[3] == "6"
    text = write_page(tmp_path).read_text(encoding="utf-8")
    assert "|HMOCGP|51.32|5.0|" in text.replace("*", "")


def test_the_page_has_what_there_are_runs_of(tmp_path, bikes):
    text = write_page(tmp_path).read_text(encoding="utf-8")
    assert "## Table 4" in text
    for absent in ("## Table 1", "## Table 2", "## Table 3", "## The engines", "## Figures"):
        assert absent not in text


@pytest.mark.parametrize("seed", range(6))
def test_a_page_of_few_runs_is_written(tmp_path, seed):
    """Studies that were interrupted, or asked for some of the runs only."""
    for study in (synthetic.STUDY, areas.STUDY, new_york.STUDY):
        rows = study.read(RESULTS).sample(1 + 5 * seed, random_state=seed)
        rows.to_csv(study.path(tmp_path), index=False)
    assert "## Table 4" in write_page(tmp_path).read_text(encoding="utf-8") or seed == 0


def test_the_command_does_the_runs_and_ends_with_1_if_one_fails(tmp_path, monkeypatch, capsys):
    def run(settings):
        if settings["model"] == "CGP":
            raise ValueError("no convergence")
        return dict.fromkeys(synthetic.STUDY.results, 1.0)

    study = Study("synthetic", synthetic.STUDY.settings, synthetic.STUDY.results, run)
    runs = synthetic.runs(1, [synthetic.TABLE_1])
    monkeypatch.setitem(__main__.TARGETS, "table1", ("", 1, lambda draws: [(study, runs)]))
    arguments = ["table1", "--folder", str(tmp_path), "--jobs", "1"]
    assert __main__.main(arguments) == 1
    shown = capsys.readouterr()
    assert "1 runs failed. The first: ValueError: no convergence" in shown.err
    assert shown.out.strip() == str(tmp_path / "results.md")
    with pytest.raises(SystemExit):
        __main__.main(["table9"])


def test_calibration_shows_what_the_runs_say(tmp_path):
    made_up(synthetic.SHARE_STUDY, synthetic.share_runs(2),
            lambda run: 0.1 * MODELS.index(run["model"]), tmp_path)  # fmt: skip
    left, middle, _ = figures.calibration(tmp_path).axes
    for k, line in enumerate(left.lines[:6]):
        assert line.get_label() == MODELS[k]
        np.testing.assert_allclose(line.get_ydata(), 0.1 * k * np.arange(11))
    heights = [line.get_ydata() for line in middle.lines if len(line.get_ydata()) == 5]
    assert {round(float(h[0]), 3) for h in heights} >= {0.0, 0.1, 0.2, 0.3, 0.4, 0.5}
    styles = {(line.get_marker(), line.get_linestyle()) for line in left.lines[:6]}
    assert len(styles) == 6, "models are told apart without colours"
    plt.close("all")


def test_the_censoring_figure_shows_no_more_than_was_seen(data_folder):
    (ax,) = figures.censoring(data_folder).axes
    truth, seen = (line.get_ydata() for line in ax.lines[:2])
    assert np.all(seen <= truth)
    assert np.any(seen < truth)
    plt.close("all")


def test_every_target_has_runs(data_folder):
    for name, (_, _, wanted) in __main__.TARGETS.items():
        if name not in __main__.NOT_IN_ALL:
            assert all(pd.DataFrame(runs).notna().all().all() for _, runs in wanted(1)), name
