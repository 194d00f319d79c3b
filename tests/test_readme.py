"""What the README shows runs as it stands."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reproduction import new_york, synthetic, tables

README = Path(__file__).resolve().parent.parent / "README.md"


@pytest.mark.slow
@pytest.mark.usefixtures("mixed_by_default")
def test_what_it_shows_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    said = {}
    exec(blocks[0], said)  # the README is ours
    said["frame"] = pd.DataFrame(said["world"].table())
    exec(blocks[1], said)
    assert (tmp_path / "bikes.cgp").is_file()
    assert np.all(said["low"] <= said["high"])
    assert np.all(said["filled"] >= said["world"].observed)
    assert said["metrics"].r2(said["demand"], said["world"].demand) > 0.6


def test_its_table_of_results_is_that_of_the_runs():
    folder = README.parent / "docs" / "results"
    table = tables.summary(*(study.read(folder) for study in (synthetic.STUDY, new_york.STUDY)))
    assert "table 1" in table
    assert "table 4" in table
    assert table in README.read_text(encoding="utf-8")
