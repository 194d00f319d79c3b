"""Write the report: one HTML page about a fitted model that needs no network and no other file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from censored_gp.estimator.persistence import replacing
from censored_gp.reporting import content


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    diagnosis: Any = None,
    folds: int | None = 5,
    comparison: Any = None,
    problems: Sequence[str] = (),
    probability: float = 0.9,
    max_points: int = 2000,
    random_state: Any = None,
) -> Path:
    """Write one HTML page about a fitted model, with charts to zoom and hover; return its path.

    Parameters
    ----------
    model : CensoredGP
        A fitted model.
    path : str or path
        Where to write; a file that is there is replaced when the page is complete.
    title : str, optional
        Heading of the page.
    diagnosis : Diagnosis, optional
        What `model.diagnose()` returned: whether the estimates are to be trusted.
    folds : int, optional
        If no diagnosis is given: diagnose now, with one day in so many held out, by one more fit.
        None: the page says nothing on whether it is to be trusted.
    comparison : table, True, or list of model names, optional
        What `compare` returned; or the models to compare now, on the training data (True: all six).
    problems : list of str
        Problems of the data that were found before, to be listed with those found here.
    probability : float
        Of all intervals.
    max_points : int
        Points drawn of each output; of more rows, peaks and troughs are kept.
    random_state : int, RandomState or None
        Seed of the joint draws of lost demand.

    Examples
    --------
    >>> import tempfile
    >>> from censored_gp import CGP
    >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
    >>> page = write_report(model, tempfile.mkdtemp() + "/report.html", title="Six hours")
    >>> "<title>Six hours</title>" in page.read_text(encoding="utf-8")
    True
    """
    check_is_fitted(model)
    try:
        import jinja2
        import vl_convert

        from censored_gp.reporting import charts
    except ImportError as error:
        raise ImportError(
            f"A report needs {error.name}, which is not installed: "
            'pip install "censored-gp[report]".'
        ) from error
    if diagnosis is None and folds:
        diagnosis = model.diagnose(folds=folds)
    cautions = () if diagnosis is None else diagnosis.warnings
    names = [str(name) for name in model.output_names_]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    found = content.Content(
        title or f"Censored GP report: {', '.join(names[:3])}{more}",
        model,
        probability,
        content.drawn_series(model, probability, max_points),
        content.lost_demand(model, probability, random_state),
        diagnosis,
        content.comparison(model, comparison),
        list(dict.fromkeys((*problems, *content.data_problems(model), *cautions))),
    )
    # Vega, Vega-Lite and Vega-Embed in one script. Its type says wrongly that it needs an argument.
    script = vl_convert.javascript_bundle()  # pyright: ignore[reportCallIssue]
    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    pages.filters |= {"amount": content.amount, "percent": content.percent}
    text = pages.get_template("template.html").render(
        content=found,
        about=content,
        charts=charts.draw(found),
        vega=script.replace("</script", r"<\/script"),
    )
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")
    return Path(path)
