"""The report of a run that goes on, on a page that renews itself; nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from epo_lab.runner.folder import CURVES

POLL = 5000
"""Milliseconds between two looks for news."""
_LIVE = """
let known = null;
setInterval(async () => {
  try {
    const now = await (await fetch("version")).text();
    if (known !== null && now !== known) location.reload();
    known = now;
  } catch (error) { document.title = "(ended) " + document.title.replace("(ended) ", ""); }
}, %d);
"""


def make_server(folders: list[Path], page: Callable[[str, str], str], host: str, port: int) -> ThreadingHTTPServer:
    """Return a server of the page; it answers when its ``serve_forever`` is called.

    Args:
        folders: Run folders.
        page: Returns the page, from the tag that brings plotly and the script that renews it.
        host: Address to listen on.
        port: Port; 0 takes a free one.
    """
    from plotly.offline import get_plotlyjs

    plotly = get_plotlyjs().encode()

    def version() -> str:
        times = [file.stat().st_mtime_ns for folder in folders if (file := folder / CURVES).is_file()]
        return "-".join(map(str, times))

    class Handler(BaseHTTPRequestHandler):
        """Answers three addresses; the page is made anew for every look at it."""

        def do_GET(self) -> None:
            if self.path == "/":
                text = page('<script src="plotly.js"></script>', _LIVE % POLL)
                self._answer(text.encode(), "text/html; charset=utf-8", "no-store")
            elif self.path == "/version":
                self._answer(version().encode(), "text/plain", "no-store")
            elif self.path == "/plotly.js":
                self._answer(plotly, "text/javascript", "max-age=86400")
            else:
                self.send_error(404)

        def _answer(self, content: bytes, kind: str, cache: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", cache)
            # a reader may close the page before it has it all
            with suppress(ConnectionError):
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing of single requests."""

    return ThreadingHTTPServer((host, port), Handler)
