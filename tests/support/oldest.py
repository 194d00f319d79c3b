"""Print constraints for pip: the lower bound of every dependency (``oldest``), or none."""

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"].values()
wanted = [*project["dependencies"], *(line for extra in extras for line in extra)]
for line in wanted if sys.argv[1:] == ["oldest"] else ():
    name, _, bound = re.fullmatch(r"([\w.-]+)(\[.*\])?(?:>=([\d.]+))?", line).groups()
    if bound:
        # A constraint may not name extras.
        print(f"{name}=={bound}")
