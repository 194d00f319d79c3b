"""The tables' protocols, their runs, and their sections from runs that the tests make up."""

import numpy as np
import pytest
from scipy.stats import poisson

from censored_gp.paper import (
    WHAT,
    elsewhere,
    engines,
    gaps,
    models,
    new_york,
    reproduce,
    shares,
    synthetic,
    table1,
    table2,
    table3,
    table4,
)
from censored_gp.paper.page import verdict
from censored_gp.paper.reproduce import write_page
from censored_gp.paper.runs import Study, complete
from support.made_up import made_up


def best_is_last(run):
    return -float(models.MODELS.index(run["model"])) if run["model"] in models.MODELS else 0.0


def test_the_world_of_a_draw_is_the_papers():
    pair = synthetic.world(3, "block")
    assert len(pair.x) == 100
    assert (pair.x[0], pair.x[-1]) == (0.0, 10.0)
    np.testing.assert_array_equal(pair.censored[:, 0], (pair.x >= 1.3) & (pair.x <= 5.5))
    assert not pair.censored[:, 1].any()
    down = (pair.truth - pair.observed)[:, 0]
    np.testing.assert_array_equal(down[~pair.censored[:, 0]], 0.0)
    depth = synthetic.world_settings(3)["depth"] * pair.truth[:, 0].std()
    np.testing.assert_allclose(down[pair.censored[:, 0]], depth)


def test_hyper_parameters_vary_within_their_ranges():
    worlds = [synthetic.world_settings(draw) for draw in range(20)]
    for name, (low, high) in synthetic.RANGES.items():
        values = [world[name] for world in worlds]
        assert low <= min(values) < max(values) <= high
        assert len(set(values)) == 20


def test_scenarios_overlap_as_much_as_they_say():
    for name, wanted in (("0 %", 0.0), ("50 %", 0.5), ("100 %-M", 1.0), ("100 %-H", 1.0)):
        first, second = synthetic.world(0, *table2.SCENARIOS[name]).censored.T
        assert (first & second).sum() / first.sum() == pytest.approx(wanted, abs=0.04)
        assert first.sum() == pytest.approx(second.sum(), abs=3)


def test_single_outputs_that_see_the_same_share_a_run():
    runs = table2.runs(1)

    def of(model):
        return [run for run in runs if run["model"] == model]

    assert len(of("HMOCGP")) == 4
    assert {(r["own"], r["other"]) for r in of("CGP")} == {("block", "-"), ("broken", "-")}
    in_both = {table1.STUDY.key(run) for run in table1.runs(1)}
    assert in_both & {table2.STUDY.key(run) for run in of("CGP")}
    text = table2.section(made_up(table2.STUDY, runs, best_is_last))
    line = next(line for line in text.splitlines() if line.startswith("| CGP | 88.89"))
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    assert cells[2] == cells[8]
    assert cells[4] == cells[6]


def test_table_1_says_what_was_chosen_and_who_is_best():
    text = table1.section(made_up(table1.STUDY, table1.runs(2), best_is_last))
    assert "The paper leaves open how far censored values are pushed down" in text
    assert "| HMOCGP | 51.32 | **-5.0 ± 0.0** |" in text
    assert "NLPD: HMOCGP is the best row, ahead of MOCGP by 1.0 ± 0.0 (a clear difference)." in text
    worse = table1.section(made_up(table1.STUDY, table1.runs(2), lambda r: -best_is_last(r)))
    assert "HMOCGP is **not** the best row. NCGP is, by 5.0 ± 0.0 (a clear difference)" in worse


def test_folds_are_whole_days_and_hold_every_day_once(data_folder):
    data = table3._data({"data": "hubs", "pair": "hub14+hub37", "draw": "0"})
    folds = np.stack([table3._in_fold(data, k, 0) for k in range(table3.FOLDS)])
    np.testing.assert_array_equal(folds.sum(axis=0), 1)
    parks = table3._data({"data": "car parks", "pair": "BHMBRCBRG01+BHMBRCBRG02", "draw": "0"})
    chosen, days = table3._in_fold(parks, 1, 0), parks.time.astype("datetime64[D]")
    assert not set(days[chosen]) & set(days[~chosen])


def test_table_3_has_both_stand_ins_and_the_papers_figures(data_folder):
    runs = table3.runs(1)
    assert len(runs) == (6 + 6) * 6 * 3 * 5
    text = table3.section(made_up(table3.STUDY, runs, lambda r: -best_is_last(r)))
    assert "### Birmingham car parks" in text
    assert "### New York areas" in text
    assert text.count("HMOCGP is the best row") == 6
    assert "| HMOCGP | 0.61 | 6.98 |" in text


def test_table_3_tells_apart_where_supply_lasted():
    run = {"data": "hubs", "pair": "a+b", "draw": 0, "intensity": 0.5, "model": "CGP"}
    rows = made_up(table3.STUDY, [run | {"fold": k, "engine": "natural"} for k in (0, 1)])
    for row, expected, recorded in zip(rows, (30.0, 60.0), (10.0, 50.0), strict=True):
        row |= {"expected_out": expected, "recorded_out": recorded, "r2_lasted": 0.25}
    text = table3.section(rows)
    assert "| CGP | - | - | **0.250** | 1.50 | - | - |" in text, "90 of 60, and not 3 and 1.2"
    for row in rows:
        row["r2_lasted"] = float("nan")  # of an older study
    assert "where supply lasted, and what" not in table3.section(rows).split("### New York")[1]


def test_table_3_counts_bounds_that_rise_while_scores_fall():
    def row(model, fold, elbo, r2):
        run = {"pair": "a+b", "draw": "0", "intensity": "0.5", "fold": fold, "error": ""}
        return run | {"model": model, "elbo": elbo, "r2": r2}

    rows = [row("CGP", "0", -5.0, 0.9), row("HCGP", "0", -4.0, 0.8)]
    rows += [row("CGP", "1", -5.0, 0.9), row("HCGP", "1", -4.0, 0.95)]
    rows += [row("CGP", "2", -5.0, 0.9), row("HCGP", "2", -6.0, 0.8), row("HCGP", "3", 0.0, 0.0)]
    said = table3._bounds_and_scores(rows)
    assert "In 2 of 3 fits HCGP has a higher bound than CGP, and in 1 of these a lower" in said
    assert "HMOCGP" not in said, "of which there are no fits"


def test_table_4_has_the_papers_rows_and_one_more():
    assert len(table4.PAPER) == 13
    assert set(new_york.ROWS) - set(table4.PAPER) == {("gaussian", "MOCGP")}
    runs = [*new_york.runs(2), *gaps.runs(2)]
    assert len({table4.STUDY.key(run) for run in runs}) == len(runs)
    oracles = [run for run in runs if run["data"] == "truth" and run["family"] != "-"]
    assert {run["draw"] for run in oracles} == {0}
    assert not [r for r in runs if r["partner"] == "corrected" and r["model"] in models.SINGLE]


def test_table_4_says_which_aims_are_missed():
    def value(run):
        if run["data"] == "truth":
            return 0.7
        return 0.6 if run["model"] in ("MOCGP", "HMOCGP") else 0.3

    rows = made_up(table4.STUDY, [*table4.runs(2), *gaps.runs(2)], value)
    for row in rows:
        # At one station intervals hold what they promise, elsewhere less.
        row["coverage_expected"] = row["coverage"] + (0.0 if row["station"] == "379" else 0.2)
        row["coverage_censored_expected"] = float("nan")
    text = table4.section(rows)
    assert "| 379 | the paper's kernels | gaussian HMOCGP | 0.300 | 0.600 | 0.700 | 0.75 |" in text
    assert "In 0 of 24 cases at least 80% is closed" in text
    assert (
        "90 % coverages of the count families: 0 of 12 with the paper's kernels and 0 of 12 with "
        "the package's defaults are within 0.85 to 0.95. 2 of 6 with the paper's kernels and 2 "
        "of 6 with the package's defaults are within 0.05 of what" in text
    )
    # 0.3 is below the paper's Gaussian CGP and HCGP, and above all else at 3711.
    assert "not above its figure: gaussian CGP, gaussian HCGP." in text
    assert "### Station 3711 with station 366 corrected" in text
    assert "hour-of-week mean, uncensored hours only" in text


@pytest.mark.parametrize(
    ("ours", "truth", "others", "told", "nlpd", "why"),
    [
        (0.4, 0.7, 0.8, 0.9, 0.0, "not the censoring"),
        (0.4, 0.45, 0.4, 0.6, 0.0, "the rule"),
        (0.4, 0.79, 0.8, 0.6, 0.0, "the rule"),  # far more than is missing with the truth
        (0.4, 0.9, 0.5, 0.45, 1.0, "varying noise"),
        (0.4, 0.9, 0.5, 0.45, 3.0, "not explained"),
        (0.6, 0.9, 0.5, 0.45, 3.0, ""),
    ],
)
def test_table_4_says_why_a_champion_is_not_the_best_row(ours, truth, others, told, nlpd, why):
    def value(run):
        if run["model"] != "HMOCGP":
            return others if run["data"] == "truth" else 0.5
        return {"truth": truth, "share": told}.get(run["data"], ours)

    runs = [*new_york.runs(3), *gaps.runs(3)]
    rows = made_up(table4.STUDY, runs, value)
    for row in rows:
        # Ties in all draws would have no error.
        row["r2"] += 1e-3 * int(row["draw"]) * (row["model"] == "CGP")
        row["nlpd_per_point"] = nlpd if row["model"] == "HMOCGP" else 2.0
    text = table4.section(rows)
    lines = [line for line in text.splitlines() if "| negative binomial HMOCGP | neg" in line]
    assert len(lines) == len(new_york.STATIONS) * len(new_york.BLOCKS)
    assert {line.split("|")[-2].strip() for line in lines} == {why}


def test_what_chance_may_have_made_is_not_called_clear():
    scores = {"CGP": {(k,): v for k, v in zip("012", (1.0, 2.0, 3.2), strict=True)}}
    scores["HMOCGP"] = {(k,): 2.0 for k in "012"}
    text = verdict(scores, "HMOCGP", high_is_good=True, what="R²")
    assert "HMOCGP is **not** the best row. CGP is, by 0.067 ± 0.636 (which chance" in text


def test_the_gap_has_no_share_where_censoring_costs_nothing():
    assert np.isnan(gaps.gap_closed(0.5, 0.5, 0.5))


def test_a_model_that_is_worse_for_heeding_the_censoring_is_named():
    def value(run):
        return 0.3 if run["model"] in ("MOCGP", "HMOCGP") and run["data"] == "observed" else 0.6

    rows = made_up(table4.STUDY, [*table4.runs(2), *gaps.runs(2)], value)
    assert "| no gap (-0.30) |" in gaps.gaps(rows)
    assert "In 0 of 24 cases" in gaps.about_gaps(rows)


def test_engines_are_compared_on_runs_that_both_have_done():
    (first, wanted), (second, others) = engines.runs(1)
    assert {run["engine"] for run in wanted} == {"natural", "svi"}
    assert {(run["family"], run["model"]) for run in others} == {
        (family, "CGP") for family in new_york.CHAMPIONS
    }

    def value(run):
        return 2.0 if run["engine"] == "svi" else 3.0

    text = engines.section(made_up(first, wanted, value), made_up(second, others, value))
    assert "| CGP | 3.0 | 2.0 | -1.0 |" in text
    assert "| negative binomial CGP | 3.0 | 2.0 | -1.0 |" in text
    alone = [run for run in others if run["engine"] == "svi"]
    assert "binomial CGP |" not in engines.section([], made_up(second, alone, value))


def test_the_page_has_what_there_are_runs_of(tmp_path):
    runs = table1.runs(1)
    real = synthetic.STUDY

    def pretended(run):
        return dict.fromkeys(real.results, best_is_last(run))

    study = Study(real.name, real.settings, real.results, pretended)
    complete(study, runs, tmp_path, jobs=1)
    text = write_page(tmp_path).read_text(encoding="utf-8")
    assert "## Table 1" in text
    assert "## Table 2" not in text
    assert "## The engines" not in text
    assert len((tmp_path / "draws.csv").read_text().splitlines()) == 2


def test_what_cannot_be_reproduced_is_said(tmp_path):
    with pytest.raises(ValueError, match=r"what: found 'table9'\. Accepted are 'table1'"):
        reproduce("table9", tmp_path)
    with pytest.raises(ValueError, match="draws: found 0"):
        reproduce("table1", tmp_path, draws=0)
    assert WHAT[-1] == "all"


def test_shares_average_over_draws():
    runs = shares.runs(2)
    first = min(run["draw"] for run in runs)
    rows = made_up(shares.STUDY, runs, lambda run: float(run["draw"] - first))
    means, errors = shares.by_share(rows, "CGP", "coverage")
    np.testing.assert_allclose(means, 0.5)
    np.testing.assert_allclose(errors, 0.5)
    np.testing.assert_allclose(shares.pit_shares(rows, "CGP"), 0.5)


def test_limits_that_are_independent_of_demand_have_a_gap_of_their_own():
    runs = [*new_york.runs(1), *gaps.runs(1)]
    text = table4.section(made_up(table4.STUDY, runs, lambda r: 1.0 + (r["data"] == "truth")))
    part = text.split("**With limits")[1]
    assert part.count("| gaussian HMOCGP |") == 2 * len(new_york.STATIONS)
    assert "the paper's kernels" not in part


def test_an_engine_that_there_is_not_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"engine: found 'foo'\. Accepted are 'natural', 'svi'"):
        reproduce("table1", tmp_path, engine="foo")
    assert not [*tmp_path.iterdir()]


def test_counts_that_a_model_drew_itself_are_held_by_nine_in_ten_intervals_at_random():
    truth = np.random.default_rng(0).poisson(0.8, 4000).astype(float)

    class Known:
        discrete = np.array([True])
        shape = (len(truth), 1)
        names = ("y",)
        mean = np.full((len(truth), 1), 0.8)

        def cdf(self, y):
            return poisson.cdf(y, 0.8)

        def interval(self, level):
            assert level == 0.9
            return np.zeros(self.shape), np.full(self.shape, 2.0)

    held = models.coverage(Known(), truth)
    assert held["coverage"] == np.mean(truth <= 2)
    assert held["coverage_at_random"] == pytest.approx(0.9, abs=0.015)
    # From 0 to 2: what is below 0 is nought.
    assert models.expected_coverage(Known(), truth) == pytest.approx(poisson.cdf(2, 0.8))
    assert models.expected_coverage(Known(), truth + 0.5) == 0.9, "which are not counts"


def test_table_4_without_the_runs_of_its_gaps_has_no_word_of_them():
    text = table4.section(made_up(table4.STUDY, table4.runs(2), best_is_last))
    assert "censoring gap" not in text
    assert "see `reproduce gaps`" in text
    assert "not explained |" not in text
    assert f"{len(table4.runs(2))} runs" in text


def test_stations_elsewhere_had_no_part_in_table_4(data_folder):
    runs = elsewhere.runs(2)
    assert len({table4.STUDY.key(run) for run in runs}) == len(runs)
    stations = {name for run in runs for name in (run["station"], run["partner"])}
    known = {*new_york.STATIONS, *new_york.PARTNERS.values()}
    assert not stations & known
    assert len({run["station"] for run in runs}) == elsewhere.COUNT
    told = {(run["family"], run["model"]) for run in runs if run["data"] == "share"}
    assert told == set(new_york.COUNTED)


def elsewhere_rows(value):
    """Rows of two stations, as if they had been done."""
    runs = [
        new_york.own_run(pair, draw, family, model, data=seen)
        for family, model, seen, draws in elsewhere._kinds(1)
        for pair in (("10", "30"), ("20", "40"))
        for draw in range(draws)
    ]
    return made_up(table4.STUDY, runs, value)


def test_stations_elsewhere_are_summed_up_over_stations():
    def value(run):
        if run["data"] == "truth":
            return 0.9
        ours = run["model"] == new_york.CHAMPIONS[run["family"]]
        return (0.5 if run["station"] == "10" else 0.9) if ours else 0.4

    text = "\n".join(elsewhere.section(elsewhere_rows(value)))
    assert "### 2 more stations" in text
    assert "Stations: 10 with 30, 20 with 40." in text
    # (0.7 - 0.4) / (0.9 - 0.4), and it is closed at one of two.
    row = "| told that a share was seen | poisson MOCGP | 0.400 ± 0.000 | 0.700 ± 0.200 | 0.900"
    assert f"{row} ± 0.000 | 0.60 | 1 of 2 |" in text
    (short,) = elsewhere.in_short(elsewhere_rows(value))
    assert "; told that a share was seen, poisson MOCGP 1 of 2, negative" in short
    held = next(line for line in text.splitlines() if "expected / true" in line)
    assert held.count("within") == held.count("near") == 2
    # 0.5 is far from 0.9, and 0.9 within; both are what the model's own draws would be.
    assert "| 0.700 ± 0.200 | 0.700 ± 0.200 | 0.700 ± 0.200 | 1 of 2 | 2 of 2 |" in text


def test_stations_elsewhere_leave_table_4_as_it_is():
    runs = made_up(table4.STUDY, [*table4.runs(2), *gaps.runs(2)], best_is_last)
    without = table4.section(runs)
    both = table4.section([*runs, *elsewhere_rows(best_is_last)])
    assert both.startswith(without)
    assert "### 2 more stations" in both[len(without) :]
