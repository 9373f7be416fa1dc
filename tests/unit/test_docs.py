"""The documentation: links lead somewhere, every page is on the site, and the site can be built."""

import importlib.util
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from support.command import ROOT

pytestmark = pytest.mark.unit

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_pictures_of_a_page_exist(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_page_is_on_the_site():
    def files(node):
        values = node.values() if isinstance(node, dict) else node
        for value in values:
            yield from [value] if isinstance(value, str) else files(value)

    listed = set(files(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert listed == {str(page.relative_to(ROOT / "docs")) for page in PAGES[2:]}


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="no mkdocs: ./isaaclab.sh -i docs")
def test_the_site_is_built_without_a_warning_and_fetches_nothing(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path / "site")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    page = (tmp_path / "site/index.html").read_text()
    assert not re.search(r"""<(?:script|link|img)[^>]+(?:src|href)=["']https?://""", page)


def test_the_readme_names_papers_and_shows_a_film_first():
    readme = (ROOT / "README.md").read_text()
    for paper in ("2503.19037", "2407.20230", "2603.01741", "2007.13690"):
        assert f"arxiv.org/abs/{paper}" in readme and readme.count(paper) >= 1
    assert "Evolutionary Policy Optimization" in readme and "@misc{wang2025evolutionary" in readme
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", readme)
    assert pictures[0].endswith(".gif") and not re.search(r"\d+ tests", readme)


def test_every_task_has_a_picture_that_is_shown():
    registry = (ROOT / "source/epo_tasks/epo_tasks/registry.py").read_text()
    tasks = re.findall(r'^    "(Epo-[\w-]+-v\d)":', registry, re.MULTILINE)
    page = (ROOT / "docs/tasks.md").read_text()
    assert len(tasks) > 15
    for task in tasks:
        assert f"(tasks/{task}.png)" in page, task


def test_the_architecture_names_files_and_functions_that_exist():
    page = (ROOT / "docs/architecture.md").read_text()
    known = [path.as_posix() for folder in ("source", "tests", "tools") for path in (ROOT / folder).rglob("*.*")]
    found = 0
    for line in page.splitlines():
        # `runner/guard.py`, or `aside.py` after a file of the same folder; functions of a file stand in brackets behind
        folder = ""
        for name, members in re.findall(r"`([\w/*]+\.(?:py|yaml|tsv))`(?: \((`\w+`(?:, `\w+`)*)\))?", line):
            folder = name.rpartition("/")[0] or folder
            paths = [
                path for path in known if fnmatch(path, f"*/{folder}/{name.rpartition('/')[2]}".replace("//", "/"))
            ]
            assert paths, f"{name} is named, and is not there"
            for member in re.findall(r"\w+", members):
                assert any(re.search(rf"\b{member}\b", Path(path).read_text()) for path in paths), f"{name}: {member}"
            found += 1
        for name in re.findall(r"^\| `(\w+)/` \|", line):
            assert (ROOT / "source/epo_lab/epo_lab" / name).is_dir(), name
    assert found > 30
