"""A server that stands for the web."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest


class Web(NamedTuple):
    """A folder whose files are served, where from, and what was asked for."""

    folder: Path
    address: str
    requests: list[str]


class Handler(SimpleHTTPRequestHandler):
    def __init__(self, *args, requests, **settings):
        self.requests = requests
        super().__init__(*args, **settings)

    def log_request(self, code="-", size="-"):
        self.requests.append(f"{self.command} {self.path} {int(code)}")

    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def web(tmp_path, monkeypatch):
    """A folder that stands for the web; pooch does not wait between its attempts."""
    pooch = pytest.importorskip("pooch")
    monkeypatch.setattr(pooch.core.time, "sleep", lambda seconds: None)
    folder, requests = tmp_path / "web", []
    folder.mkdir()
    handler = partial(Handler, requests=requests, directory=folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield Web(folder, f"http://127.0.0.1:{server.server_port}", requests)
    server.shutdown()
    server.server_close()
