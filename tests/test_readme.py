"""What the README shows runs as it stands."""

import re
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).resolve().parent.parent / "README.md"


@pytest.mark.slow
def test_the_ten_lines_run():
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    said = {}
    exec(blocks[0], said)  # the README is ours
    assert np.all(said["low"] <= said["high"])
    assert np.all(said["filled"] >= said["world"].observed)
    assert said["metrics"].r2(said["demand"], said["world"].demand) > 0.6
