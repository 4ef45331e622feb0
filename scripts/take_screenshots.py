"""Take the four pictures of docs/images/ that the README shows: a page at 1280 and 390 pixels, light and dark.

    python scripts/take_screenshots.py maps/gothenburg.html [maps/gothenburg-traffic.html]

The second page, where one is given, is the one in the dark. Chromium has to be installed.
"""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "report"))
from browser import Browser, find_chromium

ROOT = Path(__file__).resolve().parents[1]
SIZES = {"wide": (1280, 900), "phone": (390, 844)}
COLOURS = 256


def main(words: list[str]) -> None:
    """Write map-wide-light.png, map-wide-dark.png, map-phone-light.png and map-phone-dark.png."""
    found = find_chromium()
    if isinstance(found, str) or not words:
        sys.exit(found if isinstance(found, str) else (__doc__ or ""))
    folder = ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(*found, Path(profile))
        try:
            for size, (width, height) in SIZES.items():
                for shade in ("light", "dark"):
                    browser.look(width, height, dark=shade == "dark")
                    browser.open(Path(words[-1] if shade == "dark" else words[0]).resolve())
                    browser.painted()
                    picture = Image.open(io.BytesIO(browser.screenshot())).convert("RGB")
                    path = folder / f"map-{size}-{shade}.png"
                    picture.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE).save(path, optimize=True)
                    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
        finally:
            browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
