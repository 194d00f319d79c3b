"""Files from the web: kept in a folder, checked, and resumed where a download broke off."""

import contextlib
import json
import os
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

__all__ = ["NotThere", "cache_folder", "fetch"]

CACHE_VARIABLE = "CENSORED_GP_DOWNLOADS"
CHECKSUMS = "checksums.json"
CHUNK = 1 << 20
PARTIAL = 206
OUT_OF_RANGE = 416
MISSING = (403, 404)

Tell = Callable[[int, int | None], None]
"""Told how many bytes are there and how many there will be."""


class NotThere(FileNotFoundError):
    """An address at which there is no file."""


def cache_folder() -> Path:
    """Return the folder for downloads; the variable `CENSORED_GP_DOWNLOADS` names another.

    >>> cache_folder().name
    'downloads'
    """
    named = os.environ.get(CACHE_VARIABLE)
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return Path(named) if named else home / "censored-gp" / "downloads"


def fetch(
    address: str,
    *,
    name: str | None = None,
    checksum: str | None = None,
    folder: Path | None = None,
    progress: bool = True,
) -> Path:
    """Download a file unless it is there already, check it, and return its path.

    `checksum` is the file's SHA-256. Without one, that of the first download is written down in
    `checksums.json` beside the file, and holds from then on. A download that breaks off leaves a
    `.part`, and the next one goes on from there, if the server can.

    >>> import tempfile
    >>> source, kept = Path(tempfile.mkdtemp()) / "a.csv", Path(tempfile.mkdtemp())
    >>> _ = source.write_text("x")
    >>> fetch(source.as_uri(), folder=kept).read_text()
    'x'
    """
    pooch = _pooch()
    folder = folder or cache_folder()
    name = name or address.rsplit("/", 1)[-1]
    known = checksum or _known(folder).get(name)
    folder.mkdir(parents=True, exist_ok=True)
    download = _Resuming(folder / f"{name}.part", progress)
    try:
        path = Path(pooch.retrieve(address, known, name, folder, downloader=download))
    except ValueError as wrong:
        download.part.unlink(missing_ok=True)
        raise ValueError(
            f"{address}: the file is not the one expected ({wrong}). If it was changed at the "
            f"source on purpose, remove {name!r} from {folder / CHECKSUMS} and download again."
        ) from None
    if known is None:
        _write_down(folder, name, pooch.file_hash(str(path)))
    return path


class _Resuming:
    """A downloader for pooch that keeps what has come, and goes on from there."""

    def __init__(self, part: Path, progress: bool) -> None:
        self.part, self.progress = part, progress

    def __call__(
        self, address: str, output_file: str, pooch: Any, check_only: bool = False
    ) -> None:
        with _bar(self.part.stem, self.progress) as tell:
            _continue(address, self.part, tell)
        shutil.move(self.part, output_file)


def _continue(address: str, part: Path, tell: Tell) -> None:
    """Append to a partial file what is missing of it."""
    there = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(address)
    if there:
        request.add_header("Range", f"bytes={there}-")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            # A server that does not know ranges sends all of it.
            resumes = getattr(answer, "status", None) == PARTIAL
            _append(answer, part, there if resumes else 0, tell)
    except HTTPError as problem:
        if problem.code == OUT_OF_RANGE:
            return
        if problem.code in MISSING:
            raise NotThere(f"{address}: there is no such file ({problem.code}).") from None
        raise
    except URLError as problem:
        if isinstance(problem.reason, FileNotFoundError):
            raise NotThere(f"{address}: there is no such file.") from None
        raise ConnectionError(
            f"{address}: not reached ({problem.reason}). What has come is kept; try again."
        ) from None


def _append(answer: Any, part: Path, there: int, tell: Tell) -> None:
    length = answer.headers.get("Content-Length")
    total = there + int(length) if length else None
    with part.open("ab" if there else "wb") as file:
        while chunk := answer.read(CHUNK):
            file.write(chunk)
            there += len(chunk)
            tell(there, total)
    if total is not None and there < total:
        raise ConnectionError(f"{part.stem}: broke off at {there} of {total} bytes; try again.")


@contextlib.contextmanager
def _bar(name: str, wanted: bool) -> Iterator[Tell]:
    """Yield a function that moves a bar on a terminal."""
    # Imported when asked for: rich is slow to load.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    console = Console(stderr=True, quiet=not wanted)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    columns = (*columns, TransferSpeedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as shown:
        line = shown.add_task(name, total=None)
        yield lambda done, total: shown.update(line, completed=done, total=total)


def _known(folder: Path) -> dict[str, str]:
    path = folder / CHECKSUMS
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _write_down(folder: Path, name: str, checksum: str) -> None:
    known = _known(folder) | {name: checksum}
    path = folder / CHECKSUMS
    new = path.with_suffix(".new")
    new.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    new.replace(path)


def _pooch() -> Any:
    try:
        import pooch
    except ImportError:
        raise ImportError("Downloads need pooch: pip install 'censored-gp[data]'.") from None
    pooch.get_logger().setLevel("WARNING")
    return pooch
