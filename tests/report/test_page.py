"""The page tells what the model says, carries all it needs, and escapes what users wrote."""

import copy
import dataclasses
import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from censored_gp import CensoredGP, report
from censored_gp.data.layout import Layout
from censored_gp.report import facts, page, problems, series, words
from support import fitted

pytest.importorskip("vl_convert")
pytestmark = pytest.mark.usefixtures("quickly")


@pytest.fixture(scope="module")
def text(written):
    return written.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def charts(text):
    found = re.search(r'<script type="application/json" id="charts">(.*?)</script>', text, re.S)
    return json.loads(found[1])


def prose(text):
    """The page without its scripts and styles."""
    return re.sub(r"<(script|style).*?</\1>", "", text, flags=re.S)


def test_the_page_needs_no_network(text):
    assert not re.findall(r"<(?:link|img|iframe)|src=", prose(text))
    assert not re.findall(r"<script[^>]+src", text)
    assert "default-src 'none'" in text
    assert len(text) < 1_300_000, "the charts' own library has 0.9 million characters"


def test_what_users_wrote_is_text_and_nothing_else(text):
    said = prose(text)
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; &amp; $co$" in said
    assert "<b>NCGP" not in said
    assert "x&lt;i&gt;" in said
    assert "document.title = &#x27;no&#x27;" in said


def test_all_sections_are_there(text):
    names = re.findall(r'<section id="(\w+)">', text)
    assert names == [
        *("done", "demand", "lost", "calibration", "comparison", "problems", "settings")
    ]
    assert set(re.findall(r'<a href="#(\w+)">', text)) == set(names)


def test_lost_demand_on_the_page_is_what_the_model_says(text, charts):
    total = fitted.model().lost_demand()
    assert words.amount(float(total["lost"][0])) in prose(text)
    hours = fitted.model().lost_demand(by=["output", "hour"])
    drawn = charts[2]["data"]["lost"]
    own = [y for y, o in zip(drawn["y"], drawn["o"], strict=True) if o == 2]
    expected = hours["lost"][np.asarray(hours["output"]) == "station_2"]
    np.testing.assert_allclose(own, expected, rtol=1e-4)


def test_every_cell_is_drawn_as_what_it_is(charts):
    known, drawn = fitted.model().observations_, charts[0]["data"]["series"]
    kinds = np.array(drawn["k"])
    for number, kind in enumerate(series.KINDS):
        np.testing.assert_array_equal(kinds == number, getattr(known, f"is_{kind}")[:, 0])
    recorded = np.array([np.nan if v is None else v for v in drawn["v"]])
    np.testing.assert_allclose(recorded[kinds == 1], known.lower[kinds == 1, 0], rtol=1e-4)
    estimate = np.array(drawn["e"])
    assert np.all(estimate[kinds == 1] >= recorded[kinds == 1] - 1e-4)
    assert drawn["x"][1] - drawn["x"][0] == 3_600_000


def test_the_shapes_of_censored_cells_differ(charts):
    layers = charts[0]["spec"]["vconcat"][0]["layer"]
    shapes = {layer["mark"].get("shape") for layer in layers} - {None}
    assert shapes == {"circle", "triangle-up", "triangle-down"}


def test_settings_reproduce_the_fit(text):
    assert "time=&#x27;time&#x27;, inputs=[&#x27;rain&#x27;]" in text
    assert "max_iterations=4" in text
    assert "# censored-gp " in text


def test_rows_that_were_chosen_are_named():
    layout = Layout(("north", "south"), "time", by="station", value="n")
    model = SimpleNamespace(layout_=layout, where_=(("store", "235"),))
    assert words._chosen_rows(model) == [
        "# table: its rows in which 'store' is '235' and 'station' is one of 'north', 'south'"
    ]
    assert words._chosen_rows(SimpleNamespace(layout_=Layout(("a",), "time"))) == []


@pytest.mark.parametrize(("inputs", "over"), [({"is_time": True}, "time"), ({}, "the inputs")])
def test_the_scatter_changes_with_what_there_is(inputs, over):
    model = copy.copy(fitted.model())
    is_time = (bool(inputs), *model.columns_.is_time[1:])
    model.columns_ = dataclasses.replace(model.columns_, is_time=is_time)
    assert f"scatter may change with {over}, too." in words._model(model)


def test_a_fit_that_did_not_settle_is_a_problem(text):
    section = prose(text).split('id="problems"')[1]
    assert page.escaped(fitted.model().report_.message) in section


def test_many_rows_are_thinned_to_peaks_and_troughs():
    x, rng = np.arange(5000.0), np.random.default_rng(0)
    mean = rng.normal(size=(5000, 1))
    rows = series.rows_to_draw(x, mean, 1000)
    assert len(rows) <= 1000
    assert np.all(np.diff(x[rows]) > 0)
    assert mean[rows].max() == mean.max()
    assert mean[rows].min() == mean.min()


def test_the_page_says_how_many_rows_are_drawn(tmp_path):
    found = series.series_of(fitted.model(), 0.9, 100)
    assert (found.drawn, found.rows) == (100, 336)
    made = facts.Facts("t", fitted.model(), 0.9, found, None, None, [], ())
    assert "Of 336 rows 100 are drawn" in words.what_was_drawn(made)


def test_gaps_and_repeated_times_are_found():
    times = np.datetime64("2024-06-03T00", "h") + np.array([0, 1, 2, 2, 3, 10]).astype("m8[h]")
    twice, gap = problems._of_times(times.astype("datetime64[s]"))
    assert twice == "1 times are there more than once, first 2024-06-03 02:00."
    assert gap.endswith("the longest is 7 hours, after 2024-06-03 03:00.")


def test_a_page_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("before")
    monkeypatch.setattr(report.write, "gather", lambda *_: None)
    monkeypatch.setattr(report.write, "page", lambda _: "\ud800")
    with pytest.raises(UnicodeEncodeError):
        report.write_report(fitted.model(), path)
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_text_cannot_leave_its_script():
    text = page.as_script({"a": "</script><!--\u2028&"})
    assert not re.search(r"[<>&\u2028]", text)
    assert json.loads(text) == {"a": "</script><!--\u2028&"}


def test_without_altair_it_is_said_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(ImportError, match=r'vl_convert.*pip install "censored-gp\[report\]"'):
        report.write_report(fitted.model(), tmp_path / "page.html")


@pytest.fixture(scope="module")
def below_a_limit():
    """A model without times, of concentrations below a limit of detection."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 10, 40)
    y = np.sin(x) + 0.2 * rng.normal(size=40)
    model = CensoredGP(heteroscedastic=False)
    return model.fit({"depth": x}, np.maximum(y, -0.5), -(y < -0.5).astype(int))


@pytest.mark.slow
def test_without_times_and_losses_the_page_has_what_there_is(below_a_limit, tmp_path):
    path = report.write_report(below_a_limit, tmp_path / "page.html")
    said = prose(path.read_text(encoding="utf-8"))
    assert 'id="lost"' not in said
    assert 'id="comparison"' not in said
    assert "recorded values are only an upper bound" in said
    assert "flatters it" in said


@pytest.mark.slow
def test_cells_are_held_out_and_models_compared_when_asked_for(below_a_limit, tmp_path):
    path = tmp_path / "page.html"
    report.write_report(below_a_limit, path, folds=2, comparison=["NCGP", "CGP"])
    said = prose(path.read_text(encoding="utf-8"))
    assert "40 cells were held out" in said
    assert "exact cells only" in said
    rows = re.findall(r"<tr[^>]*><td>(N?CGP)</td>", said)
    assert sorted(rows) == ["CGP", "NCGP"]
    assert said.count("<tr class=best>") == 1
