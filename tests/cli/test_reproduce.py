"""The command that reproduces the paper: what it accepts, and how it ends when runs fail."""

import pytest

from censored_gp import paper

HEADER = "draw,engine,nlpd,seconds,error,version,finished\n"
GOOD, BAD = "1,natural,1,2,,0,now\n", '2,natural,,2,"ValueError: no, sorry",0,now\n'


def test_the_help_names_every_target(run, monkeypatch):
    shown = " ".join(run("reproduce --help").output.split())
    assert all(name in shown for name in paper.WHAT)


@pytest.mark.parametrize(("rows", "code"), [(GOOD, 0), (GOOD + BAD, 0), (BAD, 1), ("", 0)])
def test_failed_runs_are_told(run, tmp_path, monkeypatch, rows, code):
    (tmp_path / "old.csv").write_text(HEADER + BAD.replace("no, sorry", "before"))

    def reproduce(what, folder, **_):
        (folder / "synthetic.csv").write_text(HEADER + rows)
        return folder / "results.md"

    monkeypatch.setattr(paper, "reproduce", reproduce)
    result = run(f"reproduce table1 --folder {tmp_path}")
    assert result.exit_code == code
    assert ("runs failed. The first: ValueError: no, sorry" in result.stderr) == (BAD in rows)
    assert ("Error: no run succeeded" in result.stderr) == (code == 1)
    assert "before" not in result.stderr
