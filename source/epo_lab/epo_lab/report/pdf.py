"""The page as a PDF, printed by a browser."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from epo_lab.base.errors import UserError
from epo_lab.base.files import replace_file

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 180


def print_page(page: Path, path: Path) -> None:
    """Print a page into a PDF.

    Args:
        page: The page.
        path: The PDF.

    Raises:
        UserError: If there is no browser, or it fails.
    """
    browser = find_browser()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder, "page.pdf")
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
        # figures are drawn by a script, which takes its time
        command += ["--virtual-time-budget=30000", "--no-pdf-header-footer", f"--print-to-pdf={scratch}"]
        try:
            result = subprocess.run(
                [*command, page.resolve().as_uri()], capture_output=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise UserError(
                f"{browser} did not print the page within {SECONDS} s: print it from your browser"
            ) from None
        if result.returncode != 0 or not scratch.is_file():
            last = result.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise UserError(f"{browser} could not print the page: {' '.join(last)}")
        replace_file(path, lambda beside: shutil.copyfile(scratch, beside))


def find_browser() -> str:
    """Return the path of a browser that can print."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise UserError(f"--pdf needs one of {', '.join(BROWSERS)}: install one, or print the page from your browser")
    return found
