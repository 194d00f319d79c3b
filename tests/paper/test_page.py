"""The words and numbers of the page follow from the rows of runs."""

import numpy as np
import pytest

from censored_gp.paper import page

DONE = {"error": "", "seconds": 1.0, "finished": "2026-11-16T15:00:25Z"}


def rows(**by_model):
    return [
        {"model": model, "draw": str(k), "score": value, **DONE}
        for model, values in by_model.items()
        for k, value in enumerate(values)
    ]


def scores(**by_model):
    return page.collect(rows(**by_model), ["model"], ["draw"], "score")


def test_a_mean_has_the_standard_error_of_the_mean():
    values = np.random.default_rng(0).normal(size=20)
    mean, error = page.shown(values, 6).split(" ± ")
    assert float(mean) == pytest.approx(values.mean(), abs=1e-6)
    assert float(error) == pytest.approx(values.std(ddof=1) / np.sqrt(20), abs=1e-6)
    assert page.shown([np.nan, 2.0]) == "2.000"


def test_failed_runs_do_not_count():
    every = rows(CGP=[1.0, 2.0])
    every[0] |= {"error": "ValueError: no", "score": float("nan")}
    assert page.collect(every, ["model"], ["draw"], "score") == {"CGP": {("1",): 2.0}}
    assert "1 failed. " in page.effort(every)


def test_a_score_that_a_run_cannot_have_does_not_count_among_others():
    every = rows(CGP=[1.0, 2.0, np.nan], HCGP=[np.nan])
    found = page.collect(every, ["model"], ["error"], "score")
    assert found["CGP"] == {("",): 1.5}
    assert np.isnan(found["HCGP"][("",)])
    ruined = page.collect(rows(CGP=[1.0, np.inf]), ["model"], ["error"], "score")
    assert ruined["CGP"] == {("",): np.inf}, "an impossible truth is not forgiven"
    assert page.bold_best(["HCGP"], found, high_is_good=True)("HCGP", "-") == "-"


def test_differences_are_paired_by_draw():
    found = page.differences(scores(a=[1.0, 5.0, 9.0], b=[0.5, 4.0]), "a", "b")
    assert found == [0.5, 1.0]


@pytest.mark.parametrize("high_is_good", [True, False])
def test_the_verdict_names_the_best_row_and_how_clear_it_is(high_is_good):
    sign = 1.0 if high_is_good else -1.0
    found = scores(CGP=[sign * v for v in (2.0, 3.1, 4.0)], HMOCGP=[sign * v for v in (1, 2, 3)])
    said = page.verdict(found, "HMOCGP", high_is_good=high_is_good, what="Here")
    assert said == (
        "Here: HMOCGP is **not** the best row. CGP is, by 1.033 ± 0.033 (a clear difference)."
    )
    said = page.verdict(found, "CGP", high_is_good=high_is_good, what="Here")
    assert said.startswith("Here: CGP is the best row, ahead of HMOCGP by 1.033")


def test_a_difference_within_chance_is_said_to_be():
    found = scores(CGP=[1.0, 4.0, 2.0], HMOCGP=[2.0, 2.0, 2.9])
    said = page.verdict(found, "HMOCGP", high_is_good=True, what="Here")
    assert "which chance may have made" in said
    assert "too few" in page.verdict({}, "HMOCGP", high_is_good=True, what="Here")


def test_the_best_row_is_in_bold():
    bold = page.bold_best(["a", "b"], scores(a=[1.0], b=[2.0]), high_is_good=False)
    assert bold("a", "1") == "**1**"
    assert bold("b", "2") == "2"


def test_a_table_is_markdown():
    lines = page.markdown(["model", "R²"], [["CGP", "0.5"]]).splitlines()
    assert lines == ["| model | R² |", "|---|---|", "| CGP | 0.5 |"]
