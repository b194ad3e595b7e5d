"""A headless Chromium for tests: opens one page, and tells what it did, asked for and shows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine; on Debian: apt-get install chromium"
)


@dataclass
class Seen:
    """What a page did while it was open."""

    requests: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def dialog(self, dialog: Dialog) -> None:
        """Notes a dialog and closes it: an open one stops the page."""
        self.dialogs.append(dialog.message)
        dialog.dismiss()


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running browser; what it keeps in a home folder goes with it."""
    with TemporaryDirectory() as home, sync_playwright() as playwright:
        environment: dict[str, str | float | bool] = {
            **os.environ,
            "HOME": home,
            "XDG_CONFIG_HOME": home,
            "XDG_CACHE_HOME": home,
        }
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS), env=environment)
        try:
            yield browser
        finally:
            browser.close()


def opened(browser: Browser, path: Path, scheme: str = "light") -> tuple[Page, Seen]:
    """The page of a file, watched from before it loads."""
    page = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]
    seen = Seen()
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("console", lambda message: seen.said.append(message.text))
    page.on("pageerror", lambda error: seen.said.append(str(error)))
    page.on("dialog", seen.dialog)
    page.goto(path.as_uri())
    page.wait_for_timeout(200)
    return page, seen
