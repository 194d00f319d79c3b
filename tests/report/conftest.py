"""A report, written once."""

import jax
import pytest

import fitted


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """The page about the small model, with a comparison that was given."""
    pytest.importorskip("vl_convert")
    from censored_gp.report import write_report

    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", True)
    rows = [
        {"model": "HMOCGP", "likelihood": "gaussian", "nlpd": 1.25, "best": True},
        {"model": "<b>NCGP</b>", "likelihood": "gaussian", "nlpd": 2.5, "best": False},
    ]
    path = tmp_path_factory.mktemp("report") / "page.html"
    title = "Bikes </title><script>document.title = 'no'</script>"
    told = ["Column 'x<i>': 3 rows were left out."]
    write_report(fitted.model(), path, title=title, comparison=rows, problems=told)
    jax.config.update("jax_disable_most_optimizations", before)
    return path
