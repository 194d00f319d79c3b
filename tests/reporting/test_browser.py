"""The page in a browser: it renders, charts respond, and it fits a phone."""

import shutil

import pytest

# Before anything is fitted and written for them.
pytest.importorskip("playwright.sync_api")
PATHS = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
CHROMIUM = next((path for path in PATHS if path), None)
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="There is no Chromium: apt-get install it")
WIDE, PHONE = {"width": 1100, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, written):
    """Open the page; afterwards there must have been no error and no request but for the page."""
    pages, troubles = [], []

    def opened(size, scheme="light"):
        page = browser.new_page(viewport=size, color_scheme=scheme)
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("requestfailed", lambda request: troubles.append(request.url))
        page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
        page.goto(written.as_uri())
        page.wait_for_function("document.documentElement.dataset.drawn")
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert not troubles


def picture(page, chart=0):
    return page.evaluate(f"document.querySelector('#chart-{chart} canvas').toDataURL()")


def box_of(page, chart=0):
    canvas = page.locator(f"#chart-{chart} canvas")
    canvas.scroll_into_view_if_needed()
    return canvas.bounding_box()


def inks(page, chart=0):
    """How many colours there are in a chart."""
    return page.evaluate(
        f"""() => {{
        const c = document.querySelector('#chart-{chart} canvas');
        const all = c.getContext("2d").getImageData(0, 0, c.width, c.height);
        const d = new Uint32Array(all.data.buffer);
        return new Set(d).size; }}"""
    )


def test_every_chart_is_drawn(opened):
    page = opened(WIDE)
    count = page.locator(".chart").count()
    assert count == 6
    assert page.locator(".chart canvas").count() == count
    assert all(inks(page, chart) > 20 for chart in range(count))


def test_names_are_shown_as_they_are_and_run_nothing(opened):
    page = opened(WIDE)
    assert page.title().startswith("Bikes </title>")
    assert "<script>alert('x')</script> & $co$" in page.locator("h3").all_inner_texts()
    assert page.locator("#chart-2 option").nth(1).inner_text().startswith("<script>")


def test_a_chart_tells_figures_where_the_pointer_is(opened):
    page = opened(WIDE)
    box, before = box_of(page), picture(page)
    assert page.locator("#told").is_hidden()
    page.mouse.move(box["x"] + 300, box["y"] + 100)
    page.mouse.move(box["x"] + 305, box["y"] + 102)
    page.locator("#told").wait_for(state="visible")
    told = page.locator("#told").inner_text()
    assert "Jun 2024" in told
    assert "90% interval" in told
    assert "undefined" not in told
    assert picture(page) != before
    page.mouse.move(2, 2)
    page.locator("#told").wait_for(state="hidden")


def test_dragging_across_the_strip_zooms(opened):
    page = opened(WIDE)
    box, before = box_of(page), picture(page)
    y = box["y"] + box["height"] - 45
    page.mouse.move(box["x"] + 200, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 320, y, steps=4)
    page.mouse.up()
    page.wait_for_timeout(200)
    assert picture(page) != before


def test_lost_demand_is_shown_for_the_output_that_is_chosen(opened):
    page = opened(WIDE)
    before = picture(page, 2)
    page.locator("#chart-2 select").select_option(index=2)
    page.wait_for_timeout(200)
    assert picture(page, 2) != before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_need_not_scroll_sideways(opened, scheme):
    page = opened(PHONE, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.evaluate("document.querySelector('#chart-0 canvas').clientWidth") > 300


def test_charts_follow_the_size_and_the_light(opened):
    page = opened(WIDE)
    before = picture(page)
    page.set_viewport_size(PHONE)
    page.wait_for_function("document.querySelector('#chart-5 canvas').clientWidth < 391")
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(600)
    assert picture(page) != before
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(20, 23, 27)"
