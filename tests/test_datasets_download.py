"""Downloads: kept, checked, and resumed; from a server that the tests run themselves."""

import json
import threading
from functools import partial
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from censored_gp.datasets import fetch
from censored_gp.datasets.download import CHECKSUMS, NotThere, cache_folder

CONTENT = bytes(range(256)) * 20
NAME = "data.bin"


class Handler(BaseHTTPRequestHandler):
    """Serves one file, with ranges or without; may break off after so many bytes."""

    def __init__(self, *args, world, **kwargs):
        self.world = world
        super().__init__(*args, **kwargs)

    def do_GET(self):
        self.world["asked"].append(self.headers.get("Range"))
        if not self.path.endswith(NAME):
            self.send_error(404)
            return
        asked = self.headers.get("Range") if self.world["ranges"] else None
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        if start >= len(CONTENT):
            self.send_error(416)
            return
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        stop = self.world.pop("break off at", len(CONTENT))
        self.wfile.write(CONTENT[start:stop])

    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def world():
    return {"asked": [], "ranges": True}


@pytest.fixture
def address(world):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, world=world))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/{NAME}"
    server.shutdown()
    server.server_close()


def test_a_file_is_downloaded_once_and_its_checksum_written_down(address, world, tmp_path):
    path = fetch(address, folder=tmp_path)
    assert path == tmp_path / NAME
    assert path.read_bytes() == CONTENT
    assert json.loads((tmp_path / CHECKSUMS).read_text()) == {NAME: sha256(CONTENT).hexdigest()}
    assert fetch(address, folder=tmp_path) == path
    assert len(world["asked"]) == 1


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_that_broke_off_goes_on(address, world, tmp_path, ranges):
    world |= {"ranges": ranges, "break off at": 1000}
    with pytest.raises(Exception, match=r"broke off at 1000|IncompleteRead"):
        fetch(address, folder=tmp_path)
    assert (tmp_path / f"{NAME}.part").stat().st_size == 1000
    assert not (tmp_path / NAME).exists()
    assert fetch(address, folder=tmp_path).read_bytes() == CONTENT
    assert world["asked"] == [None, "bytes=1000-"]


def test_a_partial_file_that_is_whole_is_taken(address, tmp_path):
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT)
    assert fetch(address, folder=tmp_path).read_bytes() == CONTENT


def test_the_wrong_file_is_refused_and_not_kept(address, tmp_path):
    with pytest.raises(ValueError, match=r"not the one expected.*checksums.json"):
        fetch(address, folder=tmp_path, checksum="0" * 64)
    assert not (tmp_path / NAME).exists()
    assert fetch(address, folder=tmp_path, checksum=sha256(CONTENT).hexdigest())


def test_a_file_damaged_later_is_fetched_again(address, world, tmp_path):
    fetch(address, folder=tmp_path).write_bytes(b"damaged")
    assert fetch(address, folder=tmp_path).read_bytes() == CONTENT
    assert len(world["asked"]) == 2


def test_what_is_not_there_is_said_not_to_be(address, tmp_path):
    with pytest.raises(NotThere, match=r"other\.bin: there is no such file"):
        fetch(address.replace(NAME, "other.bin"), folder=tmp_path)
    with pytest.raises(NotThere, match="there is no such file"):
        fetch((tmp_path / "nowhere.bin").as_uri(), folder=tmp_path)


def test_a_server_that_is_not_reached_is_an_error_of_the_connection(tmp_path):
    with pytest.raises(ConnectionError, match="try again"):
        fetch("http://127.0.0.1:9/data.bin", folder=tmp_path)


def test_the_folder_for_downloads_can_be_chosen(tmp_path, monkeypatch):
    monkeypatch.setenv("CENSORED_GP_DOWNLOADS", str(tmp_path))
    assert cache_folder() == tmp_path
