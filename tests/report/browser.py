"""Chromium without a window for tests and benchmarks: found, or installed where that is allowed, and driven."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> tuple[str, str] | str:
    """Return the paths of Chromium and its driver, or in words why there are none."""
    apt = shutil.which("apt-get")
    if _found() is None and apt and os.environ.get("CI") == "true" and os.geteuid() == 0:
        for command in (("update", "-qq"), ("install", "-y", "-qq", "chromium", "chromium-driver")):
            subprocess.run((apt, *command), check=False, capture_output=True, timeout=600)
    return _found() or "Chromium and chromedriver are not installed: apt-get install chromium chromium-driver"


def _found() -> tuple[str, str] | None:
    chromium = next((path for path in map(shutil.which, _NAMES) if path), None)
    driver = shutil.which("chromedriver")
    return (chromium, driver) if chromium and driver else None


class Browser:
    """One Chromium; `open` shows a page, and what it asked for and complained about is kept."""

    def __init__(self, chromium: str, driver: str, profile: Path) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for argument in (*QUIET, f"--user-data-dir={profile}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        # Chromium's own start script may complain on standard error; only its exit code matters.
        self.driver = webdriver.Chrome(options=options, service=Service(driver, log_output=subprocess.DEVNULL))
        self.driver.set_script_timeout(60)
        self.cdp("Network.enable")
        self.driver.get("about:blank")
        self.requests(), self.complaints()  # of the browser's own first page

    def close(self) -> None:
        self.driver.quit()

    def cdp(self, command: str, **values: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, values)

    def js(self, code: str, *arguments: Any) -> Any:
        """Run the body of a function in the page and return what it returns."""
        return self.driver.execute_script(code, *arguments)

    def look(self, width: int = 1280, height: int = 900, *, dark: bool = False, calm: bool = False) -> None:
        """Make the window a size, and say whether its user likes the dark and stillness."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        motion = {"name": "prefers-reduced-motion", "value": "reduce" if calm else "no-preference"}
        self.cdp("Emulation.setEmulatedMedia", features=[scheme, motion])

    def open(self, path: Path) -> float:
        """Open a page and wait until it is drawn; return how many milliseconds that took."""
        self.driver.get("about:blank")
        self.requests(), self.complaints()
        self.driver.get(path.as_uri())
        self.wait("document.documentElement.dataset.ready === 'yes'")
        return float(self.js("return performance.now()"))

    def wait(self, condition: str, seconds: float = 20.0) -> None:
        """Wait until an expression in the page is true."""
        end = time.monotonic() + seconds
        while not self.js(f"return Boolean({condition})"):
            if time.monotonic() > end:
                raise AssertionError(f"never came true: {condition}; {self.complaints()}")
            time.sleep(0.02)

    def painted(self) -> None:
        """Wait until what was asked for is on the canvas."""
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
        )

    def requests(self) -> list[str]:
        """Return the addresses asked for since the last call, the page itself and its inner data aside."""
        asked = []
        for entry in self._log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked.append(message["params"]["request"]["url"])
        return [url for url in asked if not url.startswith(("file:", "data:", "about:", "blob:"))]

    def complaints(self) -> list[str]:
        """Return the console's warnings and errors since the last call."""
        return [entry["message"] for entry in self._log("browser")]

    def _log(self, kind: str) -> list[dict[str, Any]]:
        return list(self.driver.get_log(kind))  # type: ignore[no-untyped-call]  # selenium types only some methods

    def screenshot(self, path: Path | None = None, *, whole: bool = False) -> bytes:
        import base64

        values: dict[str, Any] = {"format": "png"}
        if whole:
            size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
            values |= {
                "captureBeyondViewport": True,
                "clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1},
            }
        content = base64.b64decode(self.cdp("Page.captureScreenshot", **values)["data"])
        if path is not None:
            path.write_bytes(content)
        return content
