"""The chart library: made once, by a process of its own where one can be had, and kept."""

import sys

import pytest

from censored_gp.report import bundle


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder for what is kept, and nothing remembered from before."""
    monkeypatch.setenv("CENSORED_GP_CACHE", str(tmp_path / "kept"))
    for remembered in (bundle.javascript, bundle.make_beside):
        remembered.cache_clear()
    yield tmp_path / "kept"
    for remembered in (bundle.javascript, bundle.make_beside):
        remembered.cache_clear()


def test_made_beside_or_here_it_is_the_same(folder, monkeypatch):
    beside = bundle.javascript()
    assert [path.suffix for path in folder.iterdir()] == [".js"]
    bundle.javascript.cache_clear()
    monkeypatch.setenv("CENSORED_GP_CACHE", "0")
    monkeypatch.setattr(sys, "executable", "")
    bundle.make_beside.cache_clear()
    assert bundle.javascript() == beside
    assert "vegaEmbed" in beside
    assert "</script" not in beside


def test_what_is_kept_is_not_made_again(folder, monkeypatch):
    folder.mkdir()
    place = bundle._place()
    place.write_text("kept = '</script>'", encoding="utf-8")
    assert bundle.make_beside() is None
    assert bundle.javascript() == r"kept = '<\/script>'"


def test_a_process_that_fails_does_not_fail_the_page(folder, monkeypatch):
    monkeypatch.setattr(bundle, "MAKE", "raise SystemExit(1)")
    monkeypatch.setattr(bundle, "_made_here", lambda: "made here")
    assert bundle.javascript() == "made here"
    assert next(folder.iterdir()).read_text() == "made here"


def test_a_folder_that_cannot_be_written_does_not_fail_the_page(folder, monkeypatch):
    folder.write_text("a file where the folder should be")
    monkeypatch.setattr(bundle, "_made_here", lambda: "made here")
    assert bundle.javascript() == "made here"
