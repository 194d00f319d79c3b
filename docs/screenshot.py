"""Make docs/images/report.png: the report of a simulated bike share, as a browser shows it.

Run it with `make screenshot`. It needs Chromium, such as Debian's package `chromium`.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from censored_gp import HMOCGP, simulate
from censored_gp.reporting import write_report

TARGET = Path(__file__).parent / "images" / "report.png"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
SIZE = {"width": 1000, "height": 1205}


def made_report(folder: Path) -> Path:
    """Fit two weeks of a bike share, and write the report."""
    world = simulate.bike_share(days=14, stations=2, seed=1)
    table = {"time": world.time, "rain": world.rain}
    for d, name in enumerate(world.names):
        table |= {name: world.observed[:, d], f"{name}_empty": world.censored[:, d]}
    model = HMOCGP("negative_binomial").fit(
        table,
        outputs=list(world.names),
        time="time",
        inputs=["rain"],
        censored=[f"{name}_empty" for name in world.names],
    )
    return write_report(model, folder / "report.html", title="Bike demand")


def take(report: Path, target: Path) -> None:
    """Take a picture of the top of a report."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        raise SystemExit("There is no Chromium: apt-get install chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        page = browser.new_page(viewport=SIZE)
        page.goto(report.as_uri())
        page.wait_for_function("document.documentElement.dataset.drawn")
        box = page.locator("#chart-0 canvas").bounding_box()
        assert box is not None
        y = box["y"] + box["height"] - 45
        page.mouse.move(box["x"] + 0.33 * box["width"], y)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.66 * box["width"], y, steps=5)
        page.mouse.up()
        page.mouse.move(box["x"] + 0.487 * box["width"], box["y"] + 60, steps=3)
        page.wait_for_timeout(500)
        page.screenshot(path=target)
        browser.close()


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        take(made_report(Path(folder)), TARGET)
