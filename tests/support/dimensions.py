"""How large observations and actions of our tasks are, so that a test need not start an engine to know.

``tests/integration/test_dimensions.py`` looks at the environments themselves; a new task gets its row from

    ./isaaclab.sh -p -m pytest -n 0 -m slow tests/integration/test_dimensions.py

which prints it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("dimensions.json")


def dimensions() -> dict[str, dict[str, Any]]:
    """Return sizes of observation groups, number of actions and length of an episode [steps], by task."""
    return json.loads(TABLE.read_text())


def of_env(env: Any) -> dict[str, Any]:
    """Return what the table must say of an environment."""
    groups = env.observation_manager.group_obs_dim
    assert all(len(shape) == 1 for shape in groups.values()), groups
    return {
        "observations": {name: shape[0] for name, shape in groups.items()},
        "actions": env.action_manager.total_action_dim,
        "length": int(env.max_episode_length),
    }
