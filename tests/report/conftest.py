"""A report, written once."""

import pytest

from support import fitted
from support.quick import compiling_quickly


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """The page about the small model, with a comparison that was given."""
    pytest.importorskip("vl_convert")
    from censored_gp.report import write_report

    rows = [
        {"model": "HMOCGP", "likelihood": "gaussian", "nlpd": 1.25, "best": True},
        {"model": "<b>NCGP</b>", "likelihood": "gaussian", "nlpd": 2.5, "best": False},
    ]
    path = tmp_path_factory.mktemp("report") / "page.html"
    title = "Bikes </title><script>document.title = 'no'</script>"
    told = ["Column 'x<i>': 3 rows were left out."]
    with compiling_quickly():
        write_report(fitted.model(), path, title=title, comparison=rows, problems=told)
    return path
