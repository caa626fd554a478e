"""Take the pictures of the lab for README.md and docs/: a real page in a real browser. Run: make figures.

Needs Chromium and the development extra. An address holds a moment, so that every picture can be taken again.
"""

import io
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from PIL import Image
from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent.parent / "images"
MOST_BYTES, LEVELS = 250_000, 51
DESK, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}
MARGIN, SIDES = 4, (("x", "width"), ("y", "height"))
MAZE = "world.kind=maze&left.kind=forward&left.model=counts&right.kind=backward&right.frame=previous&right.model=counts"
CHAIN = "world.kind=chain&left.kind=true-forward&left.learn=false&right.kind=true-backward&right.learn=false"


class Shot(NamedTuple):
    """A picture.

    Attributes:
        name: of the file.
        address: what is on the screen, and the moment.
        parts: the elements that are seen, with all between them; none: what the window shows.
        options: of the tab.
    """

    name: str
    address: str
    parts: tuple[str, ...]
    options: Mapping[str, Any] = MappingProxyType({})


SHOTS = (
    Shot("lab-maze", f"{MAZE}&seed=11&episodes=30&at=1062", ("#stage",)),
    Shot(
        "lab-channelling",
        f"{CHAIN}&world.levels=24,6,2&seed=15&episodes=100&at=21&speed=6&story=channelling",
        (".top", "#stage"),
        {"viewport": {"width": 1150, "height": 900}},
    ),
    Shot(
        "lab-dark",
        f"{MAZE}&world.slip=0.5&left.frame=current&seed=0&episodes=30&at=1908&speed=50",
        (".top", ".charts"),
        {"color_scheme": "dark"},
    ),
    Shot("lab-phone", f"{MAZE}&seed=11&episodes=30&at=1062", (), {"viewport": PHONE, "device_scale_factor": 2}),
)


@contextmanager
def lab() -> Iterator[str]:
    """A lab in a process of its own; its address."""
    command = [sys.executable, "-m", "backcast", "lab", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[2]
        finally:
            process.terminate()


def take(page: Page, shot: Shot) -> bytes:
    """The picture, once its moment is drawn."""
    moment = int(re.search(r"at=(\d+)", shot.address)[1])
    for _ in range(600):
        page.wait_for_timeout(100)
        if page.evaluate("window.lab?.frame?.at") == moment:
            break
    else:
        sys.exit(f"{shot.name}: {shot.address} never comes to its moment")
    page.wait_for_timeout(500)  # charts are drawn a little later
    if not shot.parts:
        return page.screenshot()
    boxes = [page.locator(part).bounding_box() for part in shot.parts]
    left, top = (min(box[side] for box in boxes) - MARGIN for side in ("x", "y"))
    right, bottom = (max(box[side] + box[size] for box in boxes) + MARGIN for side, size in SIDES)
    return page.screenshot(full_page=True, clip={"x": left, "y": top, "width": right - left, "height": bottom - top})


def save(name: str, picture: bytes) -> None:
    """Write it with colours that are rounded to a few levels, which makes it small and is not seen."""
    target, step = IMAGES / f"{name}.png", 255 / LEVELS
    Image.open(io.BytesIO(picture)).convert("RGB").point(lambda v: round(round(v / step) * step)).save(
        target, optimize=True
    )
    size = target.stat().st_size
    assert size <= MOST_BYTES, f"{target}: {size:,} bytes"
    print(f"wrote {target}, {size:,} bytes")


def main() -> None:
    """Start a lab and a browser, and take every picture."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        sys.exit("pictures of the lab: no browser found; install chromium")
    with lab() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        for shot in SHOTS:
            options = {"viewport": DESK, "reduced_motion": "reduce", **shot.options}
            with browser.new_context(**options) as context:
                page = context.new_page()
                page.goto(f"{address}#{shot.address}")
                picture = take(page, shot)
            save(shot.name, picture)
        browser.close()


if __name__ == "__main__":
    main()
