"""The chart library: made once, by a process of its own where one can be had, and kept."""

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


@pytest.mark.slow
def test_made_beside_or_here_it_is_the_same(folder, monkeypatch):
    here = bundle._made_here()
    monkeypatch.setattr(bundle, "_made_here", lambda: pytest.fail("the other process made none"))
    assert bundle.javascript() == here.replace("</script", r"<\/script")
    assert [path.suffix for path in folder.iterdir()] == [".js"]
    assert "</script" not in bundle.javascript()


def test_what_is_kept_is_not_made_again(folder):
    folder.mkdir()
    bundle._place().write_text("vegaEmbed = '</script>'", encoding="utf-8")
    assert bundle.make_beside() is None
    assert bundle.javascript() == r"vegaEmbed = '<\/script>'"


@pytest.mark.parametrize("kept", [b"", b"\xff\xfe", b"cut off in the mid"])
def test_what_is_kept_and_is_not_whole_is_made_again(folder, monkeypatch, kept):
    folder.mkdir()
    bundle._place().write_bytes(kept)
    monkeypatch.setattr(bundle, "MAKE", "")
    monkeypatch.setattr(bundle, "_made_here", lambda: "vegaEmbed, made here")
    assert bundle.javascript() == "vegaEmbed, made here"
    assert bundle._place().read_text() == "vegaEmbed, made here"


@pytest.mark.parametrize("program", ["raise SystemExit(1)", "import time; time.sleep(60)"])
def test_a_process_that_fails_does_not_fail_the_page(folder, monkeypatch, program):
    monkeypatch.setattr(bundle, "MAKE", program)
    monkeypatch.setattr(bundle, "PATIENCE", 0.5)
    monkeypatch.setattr(bundle, "_made_here", lambda: "made here")
    assert bundle.javascript() == "made here"
    assert next(folder.iterdir()).read_text() == "made here"


@pytest.mark.parametrize("chosen", ["a file where the folder should be", ""])
def test_where_nothing_can_be_kept_the_page_is_made(folder, monkeypatch, chosen):
    folder.write_text(chosen)
    if not chosen:
        monkeypatch.setenv("CENSORED_GP_CACHE", "0")
    monkeypatch.setattr(bundle, "_made_here", lambda: "made here")
    assert bundle.javascript() == "made here"
    assert folder.read_text() == chosen
