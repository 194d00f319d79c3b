"""Rules of the house that no other tool checks."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import censored_gp

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "src" / "censored_gp"
SOURCES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = ("src", "tests", "reproduction", "benchmarks", "docs", ".ci")

# From the ground up: a package imports only from packages named before its own.
LAYERS = (
    *("likelihoods", "data", "kernels", "model", "inference", "prediction", "estimator"),
    *("datasets", "reporting", "cli", "__main__"),
)

OPTIONAL = (
    *("matplotlib", "vl_convert", "jinja2", "blackjax", "pandas", "polars"),
    *("dask", "distributed"),
)

# Every public name, as the package itself loads nothing until it is asked for something.
LOADED = "from censored_gp import *"

# Written in pieces, so that this file does not trip over itself.
FORBIDDEN = {
    "a path of one machine": re.compile(
        r"(?<![\w/.~-])/(" + "|".join(["wo" + "rk", "tm" + "p", "ro" + "ot", "ho" + "me"]) + r")/"
    ),
    "the host of a package index": re.compile(
        "|".join(["py" + r"pi\.", "python" + r"hosted\.org", "index" + "-url"]), re.I
    ),
}


def module_of(path: Path) -> str:
    """The top-level module of the package that a source file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    """The top-level modules of the package that a source file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("censored_gp.")}
    return found


def project_files() -> list[Path]:
    """What a reader of the repository sees, as far as it is text."""
    kept = [path for path in PROJECT.iterdir() if path.is_file() and path.name != ".git"]
    for folder in FOLDERS:
        kept += [path for path in (PROJECT / folder).rglob("*") if path.is_file()]
    return [path for path in kept if "__pycache__" not in path.parts]


@pytest.mark.parametrize(
    "path", [p for p in SOURCES if p.parent != PACKAGE or p.stem != "__init__"], ids=str
)
def test_a_module_imports_only_from_below(path):
    own = module_of(path)
    assert own in LAYERS, f"give {own} its place in LAYERS"
    allowed = set(LAYERS[: LAYERS.index(own) + 1])
    assert not imports_of(path) - allowed, f"{own} imports from above itself"


def test_the_packages_are_those_of_the_plan():
    entries = {p.name for p in PACKAGE.iterdir() if p.name != "__pycache__"}
    assert entries == {*LAYERS[:-1], "__init__.py", "__main__.py", "py.typed"}


def test_no_module_imports_another_through_a_string():
    rule = re.compile(r"import_module\(f?[\"']censored_gp|__import__\(")
    assert not [path for path in SOURCES if rule.search(path.read_text(encoding="utf-8"))]


def test_no_file_names_a_machine_or_a_package_index():
    found = []
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.name}: {what}" for what, rule in FORBIDDEN.items() if rule.search(text)]
    assert not found


def test_every_module_says_what_it_is():
    silent = [p.name for p in SOURCES if not ast.get_docstring(ast.parse(p.read_text()))]
    assert not silent


def test_every_equation_of_the_paper_is_named_in_its_home():
    text = (PROJECT / "docs" / "paper-map.md").read_text(encoding="utf-8")
    homes = re.findall(r"^\| ((?:\(\d+\)(?:, )?)+) \|.*\| `([\w.]+)`[^|]*\|$", text, re.M)
    found = {int(k): home for numbers, home in homes for k in re.findall(r"\d+", numbers)}
    assert sorted(found) == list(range(1, 17))
    for number, home in found.items():
        source = (PACKAGE / (home.replace(".", "/") + ".py")).read_text(encoding="utf-8")
        assert re.search(rf"Eq\. [^.\n]*\({number}\)", source), f"Eq. ({number}) in {home}"


def test_every_public_name_is_documented():
    assert not [n for n in censored_gp.__all__ if not getattr(censored_gp, n).__doc__]


def test_importing_the_package_pulls_in_nothing_optional_and_leaves_the_precision_alone():
    code = (
        # scikit-learn itself looks for some of them.
        "import jax, sklearn, sys; before = set(sys.modules)\n"
        f"{LOADED}\n"
        f"print([m for m in {OPTIONAL} if m in set(sys.modules) - before])\n"
        "print(jax.config.jax_enable_x64, jax.numpy.ones(1).dtype)"
    )
    settings = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=settings
    )
    assert run.stdout.splitlines() == ["[]", "False float32"]
