"""What scripts/ say about themselves."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

SCRIPTS = sorted((Path(__file__).parents[2] / "scripts").glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_help_shows_a_command_that_can_be_typed(path):
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    parser = module.make_parser()
    text = parser.format_help()
    example = next(line for line in text.splitlines() if f"./isaaclab.sh -p scripts/{path.name} " in line)
    words = example.partition(f"scripts/{path.name}")[2].split()
    # an option that was renamed would be left over
    _, rest = parser.parse_known_args(words)
    assert not [word for word in rest if word.startswith("-")], rest
