"""Axes to draw on, the small fitted model, and a report about it, written once."""

import pytest

from support import fitted
from support.quick import compiling_quickly


@pytest.fixture(scope="module", autouse=True)
def quickly(quickly):
    """Every test here compiles quickly."""
    return quickly


@pytest.fixture
def model(quickly):
    return fitted.model()


@pytest.fixture
def ax():
    return pytest.importorskip("matplotlib.figure").Figure().subplots()


@pytest.fixture(scope="session")
def diagnosis():
    with compiling_quickly():
        return fitted.model().diagnose()


@pytest.fixture(scope="session")
def written(tmp_path_factory, diagnosis):
    """The report about the small model, with hostile text wherever a user may give any."""
    pytest.importorskip("vl_convert")
    from censored_gp.reporting import write_report

    rows = [
        {"model": "HMOCGP", "likelihood": "gaussian", "nlpd": 1.25, "best": True},
        {"model": "<b>NCGP</b>", "likelihood": "gaussian", "nlpd": 2.5, "best": False},
    ]
    path = tmp_path_factory.mktemp("report") / "page.html"
    title = "Bikes </title><script>document.title = 'no'</script>"
    problems = ["Column 'x<i>': 3 rows were left out."]
    with compiling_quickly():
        about = {"title": title, "comparison": rows, "problems": problems}
        with pytest.warns(UserWarning, match="9 cell.s. with an upper bound") as told:
            write_report(fitted.model(), path, diagnosis=diagnosis, **about)
    assert len(told) == 1
    return path
