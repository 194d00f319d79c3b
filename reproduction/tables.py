"""The tables of the results page in Markdown, made from the rows of runs.

Only the paper's own figures come from elsewhere. A cell is a mean with its standard error; the best
row of a column is in bold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

from reproduction import areas, engines, synthetic
from reproduction.models import MODELS
from reproduction.new_york import CHAMPIONS, KERNELS, REFERENCES, ROWS, STATIONS, TWINS

PAPER_1 = {"NCGP": 589.82, "MONCGP": 374.79, "CGP": 88.89, "HCGP": 83.29, "MOCGP": 64.59,
           "HMOCGP": 51.32}  # fmt: skip
"""NLPD of the paper's table 1."""
PAPER_2 = {
    "NCGP": (589.82, 256.78, 256.78, 589.82),
    "MONCGP": (364.13, 129.02, 140.97, 398.54),
    "CGP": (88.89, 32.36, 32.36, 88.89),
    "HCGP": (83.29, 27.92, 27.92, 83.29),
    "MOCGP": (86.23, 25.59, 25.35, 109.05),
    "HMOCGP": (78.53, 19.33, 23.63, 103.65),
}
"""NLPD of the paper's table 2, by overlap."""
PAPER_3 = {
    "r2": {
        "NCGP": (0.54, 0.51, 0.46),
        "MONCGP": (0.54, 0.52, 0.52),
        "CGP": (0.56, 0.55, 0.55),
        "HCGP": (0.57, 0.56, 0.56),
        "MOCGP": (0.61, 0.60, 0.58),
        "HMOCGP": (0.61, 0.60, 0.59),
    },
    "mae": {
        "NCGP": (7.68, 7.94, 8.29),
        "MONCGP": (7.69, 7.85, 7.76),
        "CGP": (7.50, 7.55, 7.53),
        "HCGP": (7.41, 7.50, 7.51),
        "MOCGP": (6.99, 7.08, 7.33),
        "HMOCGP": (6.98, 6.99, 7.18),
    },
}
"""R² and MAE of the paper's table 3 at the three intensities, on its private data."""
PAPER_4 = {
    ("gaussian", "NCGP"): (0.172, 0.637, 0.241, 0.466),
    ("gaussian", "MONCGP"): (0.190, 0.653, 0.244, 0.473),
    ("gaussian", "CGP"): (0.339, 0.795, 0.360, 0.484),
    ("gaussian", "HCGP"): (0.366, 0.795, 0.362, 0.477),
    ("gaussian", "HMOCGP"): (0.381, 0.800, 0.369, 0.671),
    ("poisson", "NCGP"): (0.150, 0.678, 0.352, 0.466),
    ("poisson", "MONCGP"): (0.218, 0.679, 0.348, 0.446),
    ("poisson", "CGP"): (0.201, 0.697, 0.383, 0.476),
    ("poisson", "MOCGP"): (0.262, 0.698, 0.391, 0.478),
    ("negative_binomial", "NCGP"): (0.150, 0.5712, 0.182, 0.425),
    ("negative_binomial", "MONCGP"): (0.170, 0.691, 0.284, 0.461),
    ("negative_binomial", "CGP"): (0.174, 0.701, 0.203, 0.486),
    ("negative_binomial", "HMOCGP"): (0.224, 0.730, 0.376, 0.490),
}
"""R² of the paper's table 4 at the stations 3711, 379, 3386 and 2002."""
STAND_INS = {"car parks": "car parks", "hubs": "areas"}
TABLE_1 = {"output_1": "block", "output_2": ["-", "none"]}
"""Runs of table 1; "-" stands for an output that the model does not see."""
KERNEL_NAMES = {"paper": "paper's kernels", "default": "defaults"}
LEAST_GAP = 0.02
"""Difference in R² below which censoring costs nothing to speak of."""


def mean_se(values: Iterable[float], digits: int = 3) -> str:
    """Return a mean with its standard error, without one for a single value; NaN is left out.

    >>> mean_se([1.0, 2.0, 3.0], 2), mean_se([1.5], 1), mean_se([])
    ('2.00±0.58', '1.5', '')
    """
    known = pd.Series(values, dtype=float).dropna()
    if known.empty:
        return ""
    if np.isinf(known).any():
        return f"{known.mean():.0f}"
    mean = f"{known.mean():.{digits}f}"
    return mean if len(known) < 2 else f"{mean}±{known.sem():.{digits}f}"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table.

    >>> print(markdown(["model", "R²"], [["CGP", "0.5"]]))
    |model|R²|
    |---|---|
    |CGP|0.5|
    """
    lines = [f"|{'|'.join(cell or ' ' for cell in cells)}|" for cells in (header, *rows)]
    return "\n".join([lines[0], "|---" * len(header) + "|", *lines[1:]])


def only(rows: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """Return the rows whose columns have the given values (a list: one of them)."""
    for name, value in values.items():
        rows = rows[rows[name].isin([value] if isinstance(value, str) else value)]
    return rows


def by_draw(rows: pd.DataFrame, score: str, by: Any = "model", key: str = "draw") -> pd.DataFrame:
    """Return a score by draw (rows) and model (columns); several runs of one draw are averaged."""
    return rows.pivot_table(index=key, columns=by, values=score)


def column(
    scores: pd.DataFrame, names: Iterable[Any], digits: int, high_is_good: bool | None = None
) -> dict[Any, str]:
    """Return the cells of a column by name, the best in bold if it is said what is good."""
    cells = {name: mean_se(scores.get(name, ()), digits) for name in names}
    known = scores[[name for name in cells if name in scores]].mean()
    if high_is_good is not None and len(known):
        best = known.idxmax() if high_is_good else known.idxmin()
        cells[best] = f"**{cells[best]}**"
    return cells


def lead(scores: pd.DataFrame, champion: Any, high_is_good: bool) -> tuple[Any, pd.Series]:
    """Return the best other model, and by how much the champion is ahead of it, draw by draw.

    The model is None if there are no runs to compare.
    """
    others = scores.drop(columns=[champion], errors="ignore")
    if champion not in scores or others.empty:
        return None, pd.Series(dtype=float)
    best = others.mean().idxmax() if high_is_good else others.mean().idxmin()
    ahead = scores[champion] - scores[best] if high_is_good else scores[best] - scores[champion]
    return best, ahead.dropna()


def is_clear(differences: pd.Series) -> bool:
    """Say whether a mean difference is significant, by Student's t at 95 %."""
    if len(differences) < 2:
        return False
    return bool(abs(differences.mean()) > t.ppf(0.975, len(differences) - 1) * differences.sem())


def verdict(
    scores: pd.DataFrame, champion: str, *, high_is_good: bool, digits: int, where: str = ""
) -> str:
    """Say whether the champion is the best row, by how much, and whether that is significant."""
    best, ahead = lead(scores, champion, high_is_good)
    if not len(ahead):
        return f"{where}too few runs to compare."
    first, second = (champion, best) if ahead.mean() >= 0 else (best, champion)
    by = mean_se(ahead if first == champion else -ahead, digits)
    chance = "" if is_clear(ahead) else " (not significant)"
    return f"{where}{first} is ahead of {second} by {by}{chance}."


def summary(tables_1_2: pd.DataFrame, table_4: pd.DataFrame) -> str:
    """Return the results in one table: the paper's, ours, and those that ignore censoring."""
    lines = []
    first = only(tables_1_2, engine="natural", **TABLE_1)
    if len(first):
        nlpd = by_draw(first, "nlpd")
        name = "Synthetic data, HMOCGP: NLPD (table 1, lower is better)"
        ours, ignoring = (mean_se(nlpd.get(m, ()), 1) for m in ("HMOCGP", "MONCGP"))
        lines.append([name, f"{PAPER_1['HMOCGP']:.1f}", ours, ignoring])
    station = only(table_4, station="3711", partner="published", engine=["natural", "-"])
    for kernels in KERNELS:
        chosen = only(station, kernels=kernels, data="observed")
        r2 = by_draw(chosen, "r2", ["family", "model"])
        for family, champion in CHAMPIONS.items():
            if (family, champion) in r2:
                paper = f"{PAPER_4[family, champion][0]:.3f}" if kernels == "paper" else ""
                whose = "the paper's kernels" if kernels == "paper" else "the package's defaults"
                name = f"Bike demand, {_name(family, champion)}, {whose}: R² (table 4)"
                ours, ignoring = (mean_se(r2.get((family, m), ())) for m in (champion, "MONCGP"))
                lines.append([name, paper, ours, ignoring])
    simple = by_draw(only(station, family="-"), "r2", ["model", "data"])
    for method in dict.fromkeys(method for method, _ in REFERENCES):
        if (method, "truth") in simple:
            # The truth is the same in all draws.
            once = f"{simple[method, 'truth'].iloc[0]:.3f}"
            seen = mean_se(simple.get((method, "observed"), ()))
            lines.append([f"For comparison, {method} trained on the truth: R²", "", once, seen])
    return markdown(["", "the paper", "censored-gp", "ignoring censoring"], lines) if lines else ""


def table1(rows: pd.DataFrame) -> tuple[str, str]:
    """Return table 1 and what it says; empty without runs."""
    rows = only(rows, engine="natural", **TABLE_1)
    if rows.empty:
        return "", ""
    nlpd = by_draw(rows, "nlpd")
    digits = {"nlpd_censored": 2, "r2": 3, "coverage": 3, "coverage_censored": 3}
    columns = [column(by_draw(rows, s), MODELS, n) for s, n in digits.items()]
    best = column(nlpd, MODELS, 1, high_is_good=False)
    lines = [[m, f"{PAPER_1[m]:.2f}", best[m], *(cells[m] for cells in columns)] for m in MODELS]
    floor = mean_se(rows.groupby("draw")["nlpd_floor"].first(), 1)
    lines.append(["(generating distribution)", "", floor, "", "", "", ""])
    header = ["model", "paper's NLPD", "NLPD", "per censored point", "R²", "90 % coverage",
              "of censored points"]  # fmt: skip
    said = verdict(nlpd, "HMOCGP", high_is_good=False, digits=1)
    return markdown(header, lines), f"Paired over {len(nlpd)} draws, {said}"


def table2(rows: pd.DataFrame) -> tuple[str, str]:
    """Return table 2 and what it says; empty without runs."""
    scores = {
        name: by_draw(only(rows, engine="natural", output_1=first, output_2=["-", second]), "nlpd")
        for name, (first, second) in synthetic.TABLE_2.items()
    }
    if not all("HMOCGP" in each for each in scores.values()):
        return "", ""
    columns = {n: column(s, MODELS, 1, high_is_good=False) for n, s in scores.items()}
    lines = [
        [m, *(cell for cells, paper in zip(columns.values(), PAPER_2[m], strict=True)
              for cell in (f"{paper:.2f}", cells[m]))]
        for m in MODELS
    ]  # fmt: skip
    header = ["model", *(cell for name in columns for cell in (f"paper's {name}", name))]
    said = [verdict(s, "HMOCGP", high_is_good=False, digits=1, where=f"{name}: ")
            for name, s in scores.items()]  # fmt: skip
    return markdown(header, lines), " ".join(said)


def table3(rows: pd.DataFrame, score: str) -> str:
    """Return R² or MAE of table 3: on the paper's data and on both stand-ins."""
    header, columns = ["model"], []
    for place, c in enumerate(areas.INTENSITIES):
        header.append(f"paper, c={c}")
        columns.append({m: f"{PAPER_3[score][m][place]:.2f}" for m in MODELS})
    for data, title in STAND_INS.items():
        for c in areas.INTENSITIES:
            header.append(f"{title}, c={c}")
            scores = by_draw(only(rows, data=data, intensity=str(c)), score, key="pair")
            columns.append(column(scores, MODELS, {"r2": 3, "mae": 1}[score], score == "r2"))
    return markdown(header, [[m, *(cells[m] for cells in columns)] for m in MODELS])


def about_table3(rows: pd.DataFrame) -> str:
    """Say which rows of table 3 are the best, by data and intensity."""
    return " ".join(
        verdict(
            by_draw(only(rows, data=data, intensity=str(c)), "r2", key="pair"),
            "HMOCGP", high_is_good=True, digits=3, where=f"{title.capitalize()}, c={c}: ",
        )
        for data, title in STAND_INS.items() for c in areas.INTENSITIES
    )  # fmt: skip


def table4(rows: pd.DataFrame, stations: Iterable[str] = STATIONS) -> str:
    """Return R² of all rows by station: the paper's, with its kernels, and with defaults."""
    rows = only(rows, engine="natural", data="observed")
    header, columns = ["model"], []
    for station in stations:
        place = [*STATIONS, "2002"].index(station)
        header.append(f"{station}: paper")
        paper = {row: f"{figures[place]:.3f}" for row, figures in PAPER_4.items()}
        columns.append({row: paper.get(row, "") for row in ROWS})
        for kernels in KERNELS:
            header.append(KERNEL_NAMES[kernels])
            chosen = only(rows, station=station, kernels=kernels)
            r2 = by_draw(chosen, "r2", ["family", "model"])
            columns.append(column(r2, ROWS, 3, high_is_good=True))
    return markdown(header, [[_name(*row), *(cells[row] for cells in columns)] for row in ROWS])


def references(rows: pd.DataFrame, stations: Iterable[str] = STATIONS) -> str:
    """Return R² of the simple methods by station."""
    simple = only(rows, family="-")
    columns = []
    for station in stations:
        r2 = by_draw(only(simple, station=station), "r2", ["model", "data"])
        # The truth is the same in all draws.
        once = {name: r2[name][:1] if name[1] == "truth" else r2[name] for name in r2}
        columns.append({name: mean_se(once.get(name, ())) for name in REFERENCES})
    lines = [[f"{method}, {data}", *(cells[method, data] for cells in columns)]
             for method, data in REFERENCES]  # fmt: skip
    return markdown(["method, trained on", *stations], lines)


def calibration(rows: pd.DataFrame) -> str:
    """Return log scores and coverages of the champions with the package's defaults."""
    chosen = only(rows, engine="natural", kernels="default", data="observed")
    digits = {"mae": 2, "nlpd_per_point": 3, "ratio_train": 2}
    lines = []
    for station in STATIONS:
        for family, model in CHAMPIONS.items():
            cells = only(chosen, station=station, family=family, model=model)
            shown = [mean_se(cells[score], n) for score, n in digits.items()]
            for score in ("coverage", "coverage_censored"):
                own = cells[f"{score}_expected"].mean()
                shown.append(f"{mean_se(cells[score])} ({own:.3f})")
            lines.append([station, _name(family, model), *shown])
    header = ["station", "model", "MAE", "NLPD per hour", "expected / true demand, training",
              "90 % coverage, test", "censored hours"]  # fmt: skip
    return markdown(header, lines)


def gaps(rows: pd.DataFrame) -> str:
    """Return how much of what censoring costs the champions make good, under both rules.

    `closed = (R² heeding - R² ignoring) / (R² trained on the truth - R² ignoring)`.
    """
    rows = only(rows, engine="natural", kernels="default")
    lines = []
    groups = {s: (only(rows, partner="published", station=s), "draw") for s in STATIONS}
    more = rows[rows["partner"].str.isdigit()]
    groups[f"{more['station'].nunique()} more"] = (more, "station")
    for station, (chosen, key) in groups.items():
        for family, champion in CHAMPIONS.items():
            r2 = by_draw(only(chosen, family=family), "r2", ["data", "model"], key).mean()
            truth, cells = r2.get(("truth", champion), np.nan), []
            for data in ("observed", "limits"):
                heeding = r2.get((data, champion), np.nan)
                ignoring = r2.get((data, TWINS[family]), np.nan)
                gap = truth - ignoring
                closed = "no gap" if gap <= LEAST_GAP else f"{(heeding - ignoring) / gap:.2f}"
                cells += [f"{ignoring:.3f}", f"{heeding:.3f}", closed]
            lines.append([station, _name(family, champion), f"{truth:.3f}", *cells])
    header = ["station", "model", "trained on the truth", "paper's rule: ignoring", "heeding",
              "closed", "independent limits: ignoring", "heeding", "closed"]  # fmt: skip
    return markdown(header, lines)


def behind(rows: pd.DataFrame) -> str:
    """Return where a champion is significantly behind another row of its family, and by how much.

    The last column is the same difference if both are trained on the truth.
    """
    rows = only(rows, engine="natural", partner="published")
    lines = []
    for station in STATIONS:
        for kernels in KERNELS:
            chosen = only(rows, station=station, kernels=kernels)
            for family, champion in CHAMPIONS.items():
                models = [model for f, model in ROWS if f == family]
                own = only(chosen, family=family, model=models)
                r2 = by_draw(only(own, data="observed"), "r2")
                best, ahead = lead(r2, champion, high_is_good=True)
                if ahead.mean() < 0 and is_clear(ahead):
                    truth = only(own, data="truth").set_index("model")["r2"]
                    by_truth = truth.get(best, np.nan) - truth.get(champion, np.nan)
                    lines.append([station, KERNEL_NAMES[kernels], _name(family, champion), best,
                                  mean_se(-ahead), f"{by_truth:.3f}"])  # fmt: skip
    header = ["station", "kernels", "model", "best row", "behind by", "both trained on the truth"]
    return markdown(header, lines) if lines else ""


def compare_engines(tables_1_2: pd.DataFrame, table_4: pd.DataFrame) -> str:
    """Return ELBO, scores and times of both engines on the draws that both have done."""
    first = only(tables_1_2, **TABLE_1)
    real = engines.compared(table_4)
    groups = {f"table 1, {m}": (only(first, model=m), "nlpd", 1) for m in MODELS}
    for family in CHAMPIONS:
        groups[f"3711, {_name(family, 'CGP')}"] = (only(real, family=family), "r2", 3)
    lines = []
    for name, (rows, score, digits) in groups.items():
        both = {e: only(rows, engine=e).set_index("draw") for e in engines.ENGINES}
        shared = sorted(set(both["natural"].index) & set(both["svi"].index))
        if shared:
            scores = [mean_se(each.loc[shared, s], n) for s, n in (("elbo", 1), (score, digits))
                      for each in both.values()]  # fmt: skip
            seconds = [f"{each['fit_seconds'].median():.1f}" for each in both.values()]
            lines.append([name, *scores, *seconds])
    header = ["model", "ELBO, natural", "svi", "NLPD or R², natural", "svi", "seconds, natural",
              "svi"]  # fmt: skip
    return markdown(header, lines) if lines else ""


def effort(studies: Mapping[str, pd.DataFrame]) -> str:
    """Return how many runs each file holds, how long they took, and how many failed."""
    lines = [
        [f"`{name}.csv`", str(len(rows)), f"{rows['seconds'].sum() / 60:.0f}",
         str((rows["error"] != "").sum())]
        for name, rows in studies.items() if len(rows)
    ]  # fmt: skip
    return markdown(["file", "runs", "minutes of one core", "failed"], lines)


def _name(family: str, model: str) -> str:
    return f"{family} {model}".replace("_", " ")
