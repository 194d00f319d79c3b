"""The report shows the model's numbers, carries all it needs, and escapes what users wrote."""

import copy
import dataclasses
import json
import re
import sys
from html import escape
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from censored_gp import CensoredGP, Observations
from censored_gp.data.layout import Layout
from censored_gp.data.tables import as_arrow
from censored_gp.prediction.metrics import pit_coverage
from censored_gp.reporting import plots, report, write_report
from support import fitted

pytest.importorskip("vl_convert")


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
    assert text.startswith("<!doctype html>")
    assert not re.findall(r"<(?:link|img|iframe)|src=", prose(text))
    assert not re.findall(r"<script[^>]+src", text)
    assert "default-src 'none'" in text
    assert "vegaEmbed" in text


def test_what_users_wrote_is_escaped(text):
    shown = prose(text)
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; $co$" in shown
    assert "<b>NCGP" not in shown
    assert "&lt;b&gt;NCGP" in shown
    assert "x&lt;i&gt;" in shown
    assert "document.title = &#39;no&#39;" in shown
    tags = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, _: tags.append(tag)
    parser.feed(text)
    assert tags.count("script") == 3
    assert tags.count("title") == tags.count("style") == 1
    assert "b" not in tags


def test_every_link_leads_to_a_section(text):
    sections = re.findall(r'<section id="(\w+)">', text)
    assert sections == ["trust", "lost", "series", "calibration", "comparison", "summary"]
    assert re.findall(r'<a href="#(\w+)">', text) == sections


@pytest.mark.filterwarnings("ignore:9 cell.s. with an upper bound")
def test_lost_demand_is_what_the_model_says(text, charts):
    total = fitted.model().lost_demand()
    figure = rf'<div class="name">Lost</div><div class="figure">{float(total["lost"][0]):.0f}</div>'
    assert re.search(figure, text)
    hours = fitted.model().lost_demand(by=["output", "hour"])
    drawn = charts[2]["data"]
    own = [y for y, o in zip(drawn["y"], drawn["o"], strict=True) if o == 2]
    expected = hours["lost"][np.asarray(hours["output"]) == "station_2"]
    np.testing.assert_allclose(own, expected, rtol=1e-4)
    assert drawn["g"][:24] == list(range(24))


def test_predictions_are_those_of_the_model(charts):
    table = fitted.table()
    prediction = fitted.model().predict_distribution({k: table[k] for k in ("time", "rain")})
    low, high = prediction.interval(0.9)
    for d in range(2):
        drawn = charts[d]["data"]
        for name, cells in (("m", prediction.mean), ("lo", low), ("hi", high)):
            np.testing.assert_allclose(drawn[name], cells[:, d], rtol=1e-4)


def test_every_cell_is_drawn_as_what_it_is(charts):
    known, drawn = fitted.model().observations_, charts[0]["data"]
    kinds = np.array(drawn["k"])
    for number, kind in enumerate(report.CELL_KINDS):
        np.testing.assert_array_equal(kinds == number, getattr(known, f"is_{kind}")[:, 0])
    recorded = np.array([np.nan if v is None else v for v in drawn["v"]])
    np.testing.assert_allclose(recorded[kinds == 1], known.lower[kinds == 1, 0], rtol=1e-4)
    estimate = np.array(drawn["e"])
    # Of whole numbers under a Gaussian, at least 3 is above 2.5.
    bounds = fitted.model().training_.seen.lower[:, 0]
    assert np.all(estimate[kinds == 1] >= bounds[kinds == 1] - 1e-4)
    np.testing.assert_allclose(estimate, fitted.model().imputation().mean[:, 0], rtol=1e-4)
    assert drawn["x"][1] - drawn["x"][0] == 3_600_000


def test_calibration_is_that_of_the_days_held_out(diagnosis, charts, text):
    coverage = pit_coverage(diagnosis.pit, plots.LEVELS)
    np.testing.assert_allclose(charts[-1]["data"]["y"], coverage, rtol=1e-4)
    overall = diagnosis.scores["all"]
    assert overall["cells"] == sum(diagnosis.scores[name]["cells"] for name in fitted.NAMES)
    assert report.percent(overall["coverage"]) in prose(text)


def test_a_verdict_comes_before_all_figures(diagnosis, text):
    shown = prose(text)
    assert diagnosis.verdict
    first = shown.index(escape(diagnosis.verdict[0]))
    assert first < shown.index('class="cards"')
    own, *simple = as_arrow(diagnosis.rows).to_pylist()[2::3]
    assert all(f"<td>{report.amount(row['ratio'])}</td>" in shown for row in (own, *simple))
    assert shown.count(report.amount(own["lost"])) > 0


def test_settings_reproduce_the_fit(text):
    assert "time=&#39;time&#39;, inputs=[&#39;rain&#39;]" in text
    assert "max_iterations=4" in text
    assert "# censored-gp " in text


def test_rows_that_were_chosen_are_named():
    layout = Layout(("north", "south"), "time", by="station", value="n")
    more = {"output_names_": (), "observations_": SimpleNamespace(step=np.zeros(0))}
    more["training_"] = SimpleNamespace(is_forgotten=False)
    code = report.code(SimpleNamespace(layout_=layout, where_=(("store", "235"),), **more))
    assert "'store' is '235'" in code
    assert "'station' is one of 'north', 'south'" in code
    assert "outputs='n'" in code
    plain = SimpleNamespace(layout_=Layout(("a",), "time"), **more)
    assert "rows in which" not in report.code(plain)
    more["training_"].is_forgotten = True
    assert "time='time', ...)" in report.code(plain)


def test_a_fit_that_did_not_converge_is_a_problem(model):
    assert not model.report_.converged
    assert model.report_.message in report.data_problems(model)


def test_many_rows_are_thinned_to_peaks_and_troughs(model):
    x, mean = np.arange(5000.0), np.random.default_rng(0).normal(size=(5000, 1))
    kept = report.thinned(x, mean, 1000)
    assert len(kept) <= 1000
    assert np.all(np.diff(x[kept]) > 0)
    assert mean[kept].max() == mean.max()
    assert mean[kept].min() == mean.min()
    _, chart = report.series_charts(model, 0.9, 100)
    assert {len(column) for column in chart["data"].values()} == {100}


def test_missing_and_constant_outputs_are_problems(model):
    values = np.full((len(model.observations_), 2), 3.0)
    values[: int(0.75 * len(values)), 1] = np.nan
    changed = copy.copy(model)
    known = Observations.from_flags(values, np.zeros(values.shape))
    changed.training_ = dataclasses.replace(model.training_, observations=known)
    flat, missing, *_ = report.data_problems(changed)
    assert re.search("'y0'.* 3", flat)
    assert re.search("'y1'.*75%", missing)


def test_gaps_and_repeated_times_are_found():
    times = np.datetime64("2024-06-03T00", "h") + np.array([0, 1, 2, 2, 3, 10]).astype("m8[h]")
    twice, gap = report.time_problems(times.astype("datetime64[s]"))
    assert "2024-06-03 02:00" in twice
    assert "7 hours, after 2024-06-03 03:00" in gap
    assert report.time_problems(times[[0, 1, 2]]) == []
    assert report.time_problems(times[:1]) == []


def test_a_page_is_written_whole_or_not_at_all(model, tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("before")
    for name in ("series_charts", "lost_demand"):
        monkeypatch.setattr(report, name, lambda *_: {})
    monkeypatch.setattr("jinja2.Template.render", lambda *_, **__: "\ud800")
    with pytest.raises(UnicodeEncodeError):
        report.write_report(model, path, folds=None)
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("name", ["vl_convert", "jinja2"])
def test_without_a_package_it_is_said_how_to_get_it(model, monkeypatch, tmp_path, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf'{name}.*pip install "censored-gp\[report\]"'):
        write_report(model, tmp_path / "page.html")


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
    path = write_report(below_a_limit, tmp_path / "page.html", folds=None)
    said = prose(path.read_text(encoding="utf-8"))
    assert re.findall(r'<section id="(\w+)">', said) == re.findall(r'<a href="#(\w+)">', said)
    assert 'id="lost"' not in said
    assert 'id="comparison"' not in said
    assert "left-censored" in said


@pytest.mark.slow
def test_cells_are_held_out_and_models_compared_when_asked_for(below_a_limit, tmp_path):
    path = tmp_path / "page.html"
    write_report(below_a_limit, path, folds=2, comparison=["NCGP", "CGP"])
    said = prose(path.read_text(encoding="utf-8"))
    assert "20 cells were held out" in said
    assert "boosting" in said
    models = re.findall(r"<tr[^>]*><td>(N?CGP)</td>", said)
    assert sorted(models) == ["CGP", "NCGP"]
    assert said.count('<tr class="best">') == 1
