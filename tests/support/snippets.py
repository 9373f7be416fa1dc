"""Code of the documentation, as files."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def write_snippets(page: str, folder: Path) -> list[Path]:
    """Write the Python blocks of a page that begin with a file name, and return their paths."""
    files = []
    for name, code in _BLOCK.findall((ROOT / page).read_text()):
        files.append(folder / name)
        files[-1].write_text(code)
    return files
