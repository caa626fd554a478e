"""A real browser and a real lab, for tests of the page."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import sync_playwright

from backcast.lab.config import read_config
from patience import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
    "--host-resolver-rules=MAP evil.test 127.0.0.1",
]
WIDE = {"width": 1440, "height": 900}


@pytest.fixture(scope="module", name="lab")
def a_lab():
    """The address of a lab that compiles nothing: compiling takes seconds for each kind of agent."""
    with lab_process(NUMBA_DISABLE_JIT="1") as (_, address):
        yield address


@pytest.fixture(scope="module", name="compiled_lab")
def a_compiled_lab():
    """The address of a lab, started as anybody would start it."""
    with lab_process() as (_, address):
        yield address


@pytest.fixture(scope="module", name="browser")
def a_browser():
    """Chromium; where there is none, tests are skipped, unless BACKCAST_BROWSER_TESTS says that they are required."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        give_up = pytest.fail if os.environ.get("BACKCAST_BROWSER_TESTS") == "required" else pytest.skip
        give_up(f"no browser: none of {', '.join(NAMES)} is installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(name="page")
def a_page(browser):
    """A new tab; at the end of the test nothing may have gone wrong in it that only its console tells."""
    with tab(browser) as page:
        yield page
        assert page.told == []


@contextlib.contextmanager
def tab(browser, **options):
    """A tab with storage of its own; `told` are the errors and warnings of its console, the policy's among them."""
    with browser.new_context(**{"viewport": WIDE} | options) as context:
        context.set_default_timeout(1000 * PATIENCE)
        page = context.new_page()
        page.told = []
        page.on("console", lambda said: said.type in ("error", "warning") and page.told.append(said.text))
        page.on("pageerror", lambda error: page.told.append(str(error)))
        yield page


@contextlib.contextmanager
def lab_process(port=0, log=os.devnull, **environment):
    """The real command in a process of its own, and its address; what it says of errors goes to a file."""
    command = [sys.executable, "-m", "backcast", "lab", "--no-browser", "--port", str(port)]
    with Path(log).open("a") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=os.environ | environment
        )
    try:
        yield process, re.search(r"http://\S+/", process.stdout.readline())[0]
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def until(page, condition):
    """Wait for an expression of the page to become true, and give its value; the policy forbids to wait in the page."""
    deadline = time.monotonic() + PATIENCE
    while not (value := page.evaluate(condition)):
        assert time.monotonic() < deadline, f"{condition} is still {value!r}; the notice says {notice(page)!r}"
        page.wait_for_timeout(20)
    return value


def let_draw(page):
    """Wait until what was asked for is drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def open_lab(page, lab, **given):
    """Open what the address says, fresh, and wait for its moment; names are as in an address with _ for the dot."""
    page.goto("about:blank")
    page.goto(address(lab, **given))
    until(page, f"window.lab?.frame?.at === {given.get('at', 0)}")


def address(lab, world="maze", left="forward", right="backward", **given):
    """An address of the lab: of the paper's maze with both directions if nothing else is said."""
    kinds = {"world.kind": world, "left.kind": left, "right.kind": right}
    parts = kinds | {re.sub(r"^(world|left|right)_", r"\1.", name): value for name, value in given.items()}
    return f"{lab}#" + "&".join(f"{name}={quote(str(value))}" for name, value in parts.items())


def frame(page):
    """The header of the frame that is shown."""
    return page.evaluate("lab.frame")


def config(page):
    """What is on the screen."""
    return page.evaluate("lab.scene.config")


def values(page, side):
    """What a side (0 or 1) shows, one number per state."""
    return page.evaluate(f"lab.values({side})")


def notice(page):
    """What the notice above the boards says."""
    return page.evaluate("document.getElementById('notice-words')?.textContent")


def finish(page):
    """Go to the end of the run."""
    page.keyboard.press("End")
    until(page, "lab.frame.finished")


def tab_to(page, name, key="Tab"):
    """Move the focus by keys to the element of this id."""
    for _ in range(80):
        if page.evaluate("document.activeElement.id") == name:
            return
        page.keyboard.press(key)
    pytest.fail(f"{key} never comes to {name}")


def said(page, selector):
    """The words of an element, without the spaces around them."""
    return page.locator(selector).inner_text().strip()


def normalised(given):
    """A configuration as the page is told."""
    return json.loads(json.dumps(read_config(given).given()))


def remembered(page):
    """What is on the screen, as far as it belongs to a moment."""
    return [frame(page)["episode"], frame(page)["agents"][1]["way"], values(page, 0), values(page, 1), config(page)]
