"""`python -m reproduction table1`: do the runs that are missing, then write the page."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from reproduction import (
    areas,
    demand_recovery,
    engines,
    fresh_retail,
    new_york,
    substitution,
    synthetic,
)
from reproduction.figures import draw_all
from reproduction.page import write_page
from reproduction.study import Settings, Study, complete

Wanted = list[tuple[Study, list[Settings]]]

TARGETS: dict[str, tuple[str, int, Callable[[int], Wanted]]] = {
    "table1": (
        "two synthetic outputs, one of them censored; six models",
        synthetic.DRAWS,
        lambda draws: [(synthetic.STUDY, synthetic.runs(draws, [synthetic.TABLE_1]))],
    ),
    "table2": (
        "both outputs censored, on the same inputs or not",
        synthetic.DRAWS,
        lambda draws: [(synthetic.STUDY, synthetic.runs(draws, synthetic.TABLE_2.values()))],
    ),
    "table3": (
        "car parks of Birmingham and areas of New York, cross-validated",
        areas.DRAWS,
        lambda draws: [(areas.STUDY, areas.runs(draws))],
    ),
    "table4": (
        "bike stations of New York; Gaussian, Poisson and negative binomial",
        new_york.DRAWS,
        lambda draws: [(new_york.STUDY, new_york.runs(draws))],
    ),
    "engines": ("the paper's engine beside the package's", engines.DRAWS, engines.runs),
    "figures": (
        "the figures, and the runs by the share censored",
        synthetic.SHARE_DRAWS,
        lambda draws: [(synthetic.SHARE_STUDY, synthetic.share_runs(draws))],
    ),
    "stations": (
        "table 4 on the paper's own four stations, downloaded; not part of `all`",
        new_york.DRAWS,
        lambda draws: [(new_york.STUDY, new_york.downloaded_runs(draws))],
    ),
    "fleet": ("FreshRetailNet-50K, a model for each store; not part of `all`", 1, lambda draws: []),
    "freshretail": (
        "FreshRetailNet-50K: hours of FILE ... that were hidden; not part of `all`",
        1,
        lambda draws: [],
    ),
    "freshretail-forecast": (
        "FreshRetailNet-50K: the 1,000 largest series, 14 days ahead; not part of `all`",
        1,
        lambda draws: [],
    ),
    "substitution": (
        "RMSE of own demand where excess moves to other outputs, of FILE.csv; not part of `all`",
        1,
        lambda draws: [],
    ),
    "page": ("the page alone, from the runs that are there", 1, lambda draws: []),
}
"""What each target is, its draws, and its runs of so many draws."""
NOT_IN_ALL = ("stations", "fleet", "freshretail", "freshretail-forecast", "substitution", "page")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code, 1 if a run failed."""
    chosen = _parser().parse_args(arguments)
    if chosen.target == "substitution":
        if len(chosen.files) != 1:
            _parser().error(f"substitution takes one FILE.csv, got {len(chosen.files)}")
        print(substitution.run(chosen.files[0]))
        return 0
    if chosen.target == "fleet":
        print(fresh_retail.run(chosen.folder, chosen.stores, chosen.jobs, chosen.dask))
        return 0
    if chosen.target == "freshretail-forecast":
        folder = Path(os.environ.get("CENSORED_GP_DATA", "../shared/data")) / "freshretailnet50k"
        files = chosen.files or sorted(folder.glob("city_*.parquet"))
        if not files:
            print(f"There is no city_*.parquet in {folder}.", file=sys.stderr)
            return 1
        for line in demand_recovery.forecast(files, chosen.series, chosen.jobs):
            print(line, flush=True)
        return 0
    if chosen.target == "freshretail":
        settings = chosen.stores, chosen.rate, chosen.seed, chosen.jobs, chosen.split
        for line in demand_recovery.run(chosen.files, *settings):
            print(line, flush=True)
        return 0
    targets = [name for name in TARGETS if name not in NOT_IN_ALL]
    failed = []
    for target in targets if chosen.target == "all" else [chosen.target]:
        _, draws, wanted = TARGETS[target]
        for study, runs in wanted(chosen.draws or draws):
            kept = [run for run in runs if all(str(run.get(k)) == v for k, v in chosen.only)]
            rows = complete(study, kept, chosen.folder, jobs=chosen.jobs)
            failed += list(rows.loc[rows["error"] != "", "error"])
        if target == "figures":
            draw_all(chosen.folder)
    if failed:
        print(f"{len(failed)} runs failed. The first: {failed[0]}", file=sys.stderr)
    print(write_page(chosen.folder))
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description="Compute the paper's tables and figures anew. Runs that the folder holds are "
        "not done again.",
        epilog="\n".join(f"  {name:22}{what}" for name, (what, _, _) in TARGETS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", choices=[*TARGETS, "all"], help="what to compute")
    parser.add_argument(
        "files", nargs="*", type=Path, help="FILE.csv of substitution, FILE.parquet of freshretail"
    )
    parser.add_argument("--series", type=_positive, default=1000, help="of freshretail-forecast")
    parser.add_argument("--rate", type=float, default=0.3, help="of freshretail: share hidden")
    parser.add_argument("--seed", type=int, default=1024, help="of freshretail: what is hidden")
    parser.add_argument(
        "--split", choices=demand_recovery.SPLIT, help="of freshretail: even or odd stores; all"
    )
    parser.add_argument("--folder", type=Path, default=Path("out"), help="where results go (out)")
    parser.add_argument("--draws", type=_positive, help="draws; as many as each table has")
    parser.add_argument("--jobs", type=_positive, help="worker processes; one per core")
    parser.add_argument(
        "--dask", type=_positive, metavar="N", help="of fleet: a local Dask cluster of N workers"
    )
    parser.add_argument("--stores", type=_positive, help="so many stores; all")
    parser.add_argument(
        "--only", type=_setting, action="append", default=[], metavar="COLUMN=VALUE",
        help="runs with this setting, as in the CSV files: station=3711",
    )  # fmt: skip
    return parser


def _setting(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found:
        raise argparse.ArgumentTypeError(f"must be COLUMN=VALUE, got {text}")
    return name, value


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text}")
    return int(text)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Interrupted. The next call does what is missing.")
