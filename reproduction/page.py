"""The results page: the tables and figures of a folder's runs, with the protocol in words."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from reproduction import areas, new_york, synthetic, tables
from reproduction.figures import FIGURES
from reproduction.models import NATURAL
from reproduction.study import finished

FOUR = new_york.FOUR_STATIONS
STUDIES = (synthetic.STUDY, areas.STUDY, new_york.STUDY, synthetic.SHARE_STUDY)
INTRODUCTION = """\
# Results

The paper's four tables and its figures, computed anew with this package beside what the paper
reports. Every number comes from the runs in the CSV files beside this page, but for the paper's."""
HOW = """\
## How to run it

```
python -m reproduction all --folder out
```

in a clone of the repository, with `pip install -e . --group reproduction` and the data files in the
folder that the environment variable `CENSORED_GP_DATA` names. `all` is `table1`, `table2`,
`table3`, `table4`, `engines` and `figures`; each is a target of its own, and `page` writes this
page from the runs that are there. `stations` downloads the trip files of 2018 and runs table 4 on
the paper's own four stations. `--draws` and `--jobs` change the number of draws and of worker
processes; `--only station=3711` picks runs by a column of the CSV files. Every fit is appended to a
CSV file as it ends: interrupt the command at any time, and the next call does what is missing. A
fit that fails is a row with its error, and is tried again by the next call."""
PROTOCOL = """\
## Protocol

- One published number per row proves little. Ours are means over draws with standard errors. All
  models see the same draws, so that differences are paired; *significant* is by Student's t at
  95 %.
- Models see the training records and nothing else. Neither units, kernels nor starting values come
  from the truth, which only scores them. Some defaults (the nugget of the Poisson) were chosen with
  the three stations of table 4 in view; the twelve further stations there had no part in that.
- Models of one output (NCGP, CGP, HCGP) are fitted to the first output alone. NC stands for models
  that ignore censoring, MO for several outputs, H for varying noise.
- The engine is `natural`. For real data it takes at most {max_iterations} steps ({steps} in table
  3) and stops when the ELBO changes by less than {tolerance} nats."""
TABLE_1 = """\
## Table 1: one of two synthetic outputs is censored

Each draw is a world of its own: two outputs with varying noise, drawn from a linear model of
coregionalization over mean and log scale, at {n} equally spaced inputs on [0, 10]. Output 1 is
censored on [1.3, 5.5], output 2 is not. NLPD is that of all {n} true values of output 1. The paper
leaves open how far censored values are pushed down, and the hyper-parameters of its one draw. Here
a censored value is the truth less `depth` standard deviations of its output, and each draw has
hyper-parameters of its own, uniform on these ranges: {ranges}. The last row scores the distribution
that the values were drawn from.

{table}

{said} Intervals at censored points hold less than 90 %: hyper-parameters are estimated from few
uncensored rows, and are then taken for certain."""
TABLE_2 = """\
## Table 2: both outputs are censored

The worlds of table 1. Output 1 is censored on [1.3, 5.5] (0 %, 100 %-H) or on four spans of unit
length (50 %, 100 %-M); output 2 on other inputs (0 %), on spans half of which overlap (50 %), or on
the same ones. A model of one output has the same run in all columns in which output 1 is censored
alike.

{table}

{said}"""
TABLE_3 = """\
## Table 3: areas and their capacity

The paper's Copenhagen data are private; its figures are for orientation. Two public data sets stand
in, and follow its protocol: the record is taken for the truth, and where supply ran out (1 - c)
times the truth is shown as a lower bound. Scores of the first area are means over {folds} folds of
whole days; standard errors are over six pairs.

*Car parks*: the six of Birmingham that are full most often, each with the one that is most
correlated with it, hourly from 7:00 to 16:00. Supply ran out from {full} of the real capacity on.
*Areas*: pairs of neighbouring busy areas of New York, daily demand of 2016, with temperature. When
supply ran out is drawn: supply is {margin} times the mean demand of the {days} days before, with
log-normal noise.

R²:

{r2}

MAE, in the units of each data set:

{mae}

{said}"""
TABLE_4 = """\
## Table 4: bike demand in New York

Hourly pickups: station 3711 with 366 (the paper's own data, June and July 2018), 379 with 523 (June
and July 2016), 3386 with 393 (September and October 2016). {train} hours to train on, {validation}
to validate (which `natural` does not use), the rest to test. An hour is censored with probability
1 - sigmoid(dropoffs - pickups + 5) of the hour before, and then shows a whole number between 0 and
the truth, all equally likely. The files of 2016 have no dropoffs; there the mean pickups of the day
before stand for them, and flows are scaled to those of 3711.

*Paper's kernels*: daily, weekly, 1 h and (3711) rain, softplus links, at most {inducing} inducing
inputs each. *Defaults*: those of the package, with rain (3711) or the day's temperature as a
further input. R² is that of the true demand in the test hours:

{r2}

Simple methods, trained on the records, on the uncensored hours or on the truth:

{references}

The champions of each family with the package's defaults. Test hours, and censored training hours
given their bounds. In brackets, the share of the model's own draws that the intervals hold, which
for counts is more than 90 %, because both ends belong to the interval:

{calibration}

The published counts of station 366 are twice too high. With them halved, R² at 3711 is {corrected}.

### What censoring costs, and how much of it is made good

*Ignoring* is the same model with every record taken for an exact observation. *Closed* is the share
of the difference between ignoring and being trained on the truth that heeding the censoring makes
good. It may exceed one, where errors point to where demand moves between training and test hours.
The paper's rule shows a *share* of demand: records are low where demand is low. Under *independent
limits*, the same hours have a limit drawn from the demand of the same hour on another day. The
further stations are taken at equal steps from busy to quiet among those with a pickup an hour or
more; means are over stations.

{gaps}"""
ENGINES = """\
## The engines

The same data, models, kernels and starting values by `natural`, the package's default, and by
`svi`, the paper's engine (three Monte-Carlo samples, RMSprop). Table 1 by NLPD, station 3711 (CGP,
the paper's kernels) by R². A higher ELBO is a better posterior of the same model; at 3711 `svi` has
one inducing input for every hour, and so another model of the 1 h kernel. Scores are of draws that
both have done; seconds are medians of wall time per fit.

{table}"""
NOT_REACHED = """\
## What is not reached, and why

- **Table 2, 100 %-H.** Both outputs are censored on the same span, where nothing is known of
  either: the second has nothing to add, and its coefficients are learned all the same. The paper
  finds the same.
- **Table 3.** HMOCGP is not the best row. Both areas are hidden in a fold, so that the second one
  helps only where the first was censored, and R² scores means, which varying noise changes little.
  The record is taken for the truth: a full car park records its capacity, however many more would
  have come, and a model that expects more loses by it. Where supply lasted, R² at c = 0.8 is
  {lasted}.
- **Table 4, the paper's rule.** Censored likelihoods take a record for a limit that is independent
  of demand. The rule shows a share of demand instead, and so a model with an exponential link
  expects too much where most hours of a kind are censored (*expected / true* above). At 379 and at
  the further stations count models that heed the censoring are then worse than those that ignore
  it; under independent limits the gap closes. Records alone cannot tell the two rules apart
  (Tsiatis, 1975).
- **Table 4, champions behind.** The table below has every champion that is significantly behind
  another row of its family. Where it is about as far behind when both are trained on the truth,
  censoring is not the reason. Varying noise trusts the busiest hours least, and these make R²; with
  the paper's kernels, outputs share a weekly kernel that starts too smooth to tell weekends from
  weekdays.
- **Coverage.** Intervals at censored points of table 1, and at censored hours of 3711, hold less
  than 90 %: hyper-parameters are taken for certain, and the rule is not the one assumed.
- **Data.** Station 2002, and the paper's months of 379 and 3386, are not among the files used here;
  its figures for these two are of other months. `stations` runs them.

{behind}"""


def write_page(folder: Path) -> Path:
    """Write the page from the runs and figures that a folder holds; return its path."""
    rows = {study.name: study.read(folder) for study in STUDIES}
    done = {name: finished(each) for name, each in rows.items()}
    pairs, parks, bikes = (done[name] for name in ("synthetic", "table3", "table4"))
    published = tables.only(bikes, partner="published")
    parts = [INTRODUCTION, tables.summary(pairs, bikes), HOW, tables.effort(rows)]
    parts.append(PROTOCOL.format(**NATURAL, steps=areas.STEPS["max_iterations"]))
    table, said = tables.table1(pairs)
    if table:
        ranges = ", ".join(f"{k} {a:g} to {b:g}" for k, (a, b) in synthetic.RANGES.items())
        parts.append(TABLE_1.format(n=synthetic.N, ranges=ranges, table=table, said=said))
    table, said = tables.table2(pairs)
    if table:
        parts.append(TABLE_2.format(table=table, said=said))
    if len(parks):
        parts.append(_table3(parks))
    if len(published):
        parts.append(_table4(bikes))
    downloaded = tables.only(bikes, partner="downloaded")
    if len(downloaded):
        parts += ["### The paper's own four stations", tables.table4(downloaded, FOUR),
                  tables.references(downloaded, FOUR)]  # fmt: skip
    table = tables.compare_engines(pairs, bikes)
    if table:
        parts.append(ENGINES.format(table=table))
    drawn = {name: caption for name, (_, caption) in FIGURES.items()
             if (folder / f"{name}.svg").is_file()}  # fmt: skip
    parts += ["## Figures"] if drawn else []
    for name, caption in drawn.items():
        parts += [f"![{name}]({name}.svg)", caption]
    if len(parks) and len(published):
        lasted = tables.by_draw(tables.only(parks, data="car parks", intensity="0.8"),
                                "r2_lasted", key="pair")  # fmt: skip
        said = " and ".join(
            f"{tables.mean_se(lasted.get(m, ()))} for {m}" for m in ("CGP", "HMOCGP")
        )
        parts.append(NOT_REACHED.format(lasted=said, behind=tables.behind(bikes)))
    path = folder / "results.md"
    path.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")
    return path


def _table3(rows: pd.DataFrame) -> str:
    return TABLE_3.format(
        folds=areas.FOLDS, full=areas.AT_CAPACITY, margin=areas.SUPPLY_MARGIN,
        days=areas.SUPPLY_DAYS, r2=tables.table3(rows, "r2"), mae=tables.table3(rows, "mae"),
        said=tables.about_table3(rows),
    )  # fmt: skip


def _table4(rows: pd.DataFrame) -> str:
    published = tables.only(rows, partner="published")
    halved = tables.only(rows, partner="corrected", kernels="default")
    r2 = tables.by_draw(halved, "r2", ["family", "model"])
    said = ", ".join(f"{tables.mean_se(r2[row])} for {' '.join(row).replace('_', ' ')}"
                     for row in new_york.CHAMPIONS.items() if row in r2)  # fmt: skip
    return TABLE_4.format(
        train=732, validation=293, inducing=new_york.PAPER_INDUCING, r2=tables.table4(published),
        references=tables.references(published), calibration=tables.calibration(published),
        corrected=said, gaps=tables.gaps(rows),
    )  # fmt: skip
