"""The group of commands: what it lists, and that it imports nothing to do so."""

import subprocess
import sys

import pytest

import censored_gp
from censored_gp.cli.commands import app

NAMES = [command.name for command in app.registered_commands]


def test_it_shows_its_version(run):
    assert run("--version").output.split() == ["censored-gp", censored_gp.__version__]


def test_without_a_command_it_lists_them(run):
    shown = run("").output
    assert all(name in shown for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_command_has_an_example_and_its_summary_is_listed_whole(run, name):
    result = run(f"{name} --help")
    assert result.exit_code == 0
    lines = [line.strip() for line in result.output.splitlines()]
    assert lines[2] in run("--help").output
    assert any(line.startswith(f"censored-gp {name}") for line in lines)


def test_help_and_usage_errors_need_no_jax():
    code = (
        "import sys; from typer.testing import CliRunner; from censored_gp.cli import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        f"for name in {NAMES}:\n"
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


def test_ctrl_c_after_the_end_changes_nothing():
    code = (
        "import os, signal, sys; from censored_gp.cli import run\n"
        "class Late:\n"
        "    def __del__(self, kill=os.kill, own=os.getpid(), pressed=signal.SIGINT):\n"
        "        kill(own, pressed)\n"
        "late, sys.argv[1:] = Late(), ['--version']\n"
        "run()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("other", ["pass", "signal.signal(14, print); signal.raise_signal(14)"])
def test_only_ctrl_c_interrupts_a_command_however_long_its_end_takes(other):
    code = (
        "import atexit, signal, sys, time; from censored_gp.cli import main\n"
        "atexit.register(time.sleep, 1); main.PATIENCE = 0.2; sys.argv[1:] = ['--version']\n"
        "def app(show=main.app):\n"
        f"    {other}\n"
        "    show()\n"
        "main.app = app; main.run()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_ctrl_c_waits_until_what_a_command_needs_is_imported():
    code = (
        "import os, signal, sys; from censored_gp.cli import run\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'jaxlib':\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "            os.write(1, b'imported')\n"
        "sys.meta_path.insert(0, Finder()); sys.argv[1:] = ['data']\n"
        "run()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (130, "imported")
    assert "Interrupted" in ended.stderr


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
