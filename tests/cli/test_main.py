"""The group of commands: what it lists, and that it imports nothing to do so."""

import subprocess
import sys

import pytest

import censored_gp
from censored_gp.cli.main import SUMMARIES


def test_it_shows_its_version(run):
    assert run("--version").output.split() == ["censored-gp", censored_gp.__version__]


def test_without_a_command_it_lists_them(run):
    shown = run("").output
    assert all(name in shown for name in SUMMARIES)


@pytest.mark.parametrize("name", SUMMARIES)
def test_the_help_of_a_command_begins_with_its_summary_and_has_an_example(run, name):
    result = run(f"{name} --help")
    assert result.exit_code == 0
    lines = [line.strip() for line in result.output.splitlines()]
    assert lines[2] == SUMMARIES[name]
    assert any(line.startswith(f"censored-gp {name}") for line in lines)


def test_summaries_fit_into_a_terminal(run):
    shown = run("--help").output
    assert all(text in shown for text in SUMMARIES.values())


def test_help_and_usage_errors_need_no_jax():
    code = (
        "import sys; from typer.testing import CliRunner; from censored_gp.cli import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        f"for name in {list(SUMMARIES)}:\n"
        "    assert CliRunner().invoke(app, [name, '--help']).exit_code == 0\n"
        "    assert CliRunner().invoke(app, [name, '--unknown']).exit_code == 2\n"
        "heavy = {'jax', 'numpy', 'scipy', 'sklearn', 'pyarrow', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_package_can_be_run_as_a_module():
    command = [sys.executable, "-m", "censored_gp", "--version"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["censored-gp", censored_gp.__version__]


def test_the_shell_completes_commands(run):
    shown = run(
        "",
        env={
            "_CENSORED_GP_COMPLETE": "complete_bash",
            "COMP_WORDS": "censored-gp fo",
            "COMP_CWORD": "1",
        },
        prog_name="censored-gp",
    ).output
    assert shown.split() == ["forecast"]


def test_an_unknown_command_is_refused(run):
    assert run("nonsense").exit_code == 2
