"""Look at a page with Debian's Chromium, driven over its DevTools protocol."""

from __future__ import annotations

import base64
import io
import itertools
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
    # WebGL without a GPU
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
]


def find_chromium() -> str | None:
    """Return the browser's path, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """An open page."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call the browser and return its answer."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            answer = json.loads(self._socket.recv(timeout=120))
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def picture(self) -> Any:
        """Return what is to be seen, as a Pillow image."""
        from PIL import Image

        data = self.call("Page.captureScreenshot", format="png")["data"]
        return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")


@contextmanager
def open_page(url: str, folder: Path, size: tuple[int, int] = (1280, 800), seconds: float = 90.0) -> Iterator[Page]:
    """Open a page in a browser of its own.

    Args:
        url: Address of the page.
        folder: Where the browser keeps its files.
        size: Width and height of the window [px].
        seconds: How long the browser may take to start.
    """
    from websockets.sync.client import connect

    command = [find_chromium() or "", *FLAGS, f"--user-data-dir={folder}", f"--window-size={size[0]},{size[1]}", url]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        port_file, end = folder / "DevToolsActivePort", time.monotonic() + seconds
        while not (port_file.exists() and port_file.read_text().strip()):
            assert process.poll() is None and time.monotonic() < end, "the browser does not start"
            time.sleep(0.2)
        port = port_file.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            target = next(page for page in json.load(answer) if page["type"] == "page")
        with connect(target["webSocketDebuggerUrl"], max_size=None) as socket:
            yield Page(socket)
    finally:
        process.terminate()
        process.wait(timeout=30)
