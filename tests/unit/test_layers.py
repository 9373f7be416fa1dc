"""A folder of ``epo_lab`` imports only from those above it, so that concepts can be read one after the other."""

import ast
import sys

import pytest

from support.command import ROOT

pytestmark = pytest.mark.unit

PACKAGE = ROOT / "source/epo_lab/epo_lab"
LAYERS = (
    "base",
    "population",
    "models",
    "storage",
    "algorithms",
    "runner",
    "evaluation",
    "report",
    "configs",
    "diagnostics",
    "envpool",
    "commands",
    "cli",
)
"""From the bottom to the top."""
EXCEPTIONS = {("runner", "report")}
"""The logger writes pictures of the population, which the report draws too."""


def imported_folders(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("epo_lab."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.ImportFrom) and node.level > len(path.relative_to(PACKAGE).parents) - 1:
            yield (node.module or "").split(".")[0]


@pytest.mark.parametrize("folder", LAYERS)
def test_layers_import_downwards(folder):
    allowed = set(LAYERS[: LAYERS.index(folder) + 1])
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        for name in imported_folders(path):
            assert name in allowed or (folder, name) in EXCEPTIONS, f"{path.relative_to(PACKAGE)} imports {name}"


def test_the_population_needs_torch_alone():
    for path in sorted((PACKAGE / "population").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            for name in names:
                known = name.startswith(("torch", "epo_lab.base")) or name.partition(".")[0] in sys.stdlib_module_names
                assert known, f"{path.name} imports {name}"


def test_nobody_outside_compares_names_of_algorithms():
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] not in ("algorithms", "configs"):
            text = path.read_text()
            for name in (":PBT", ":EPO", '== "pbt"', '== "epo"'):
                assert name not in text, f"{path.relative_to(PACKAGE)} knows {name}"
