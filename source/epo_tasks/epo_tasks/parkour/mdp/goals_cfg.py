"""Config of the goals of a track."""

from collections.abc import Callable

from isaaclab.managers import CommandTermCfg
from isaaclab.utils import configclass


@configclass
class GoalsCommandCfg(CommandTermCfg):
    """Where to run, and how fast."""

    class_type: type | Callable | str = "{DIR}.goals:GoalsCommand"
    resampling_time_range: tuple[float, float] = (6.0, 6.0)
    """Seconds between two draws of the speed. Default 6."""

    asset_name: str = "robot"
    """Scene entity that runs."""

    sensor_name: str = "contact_forces"
    """Contact sensor of its bodies."""

    feet: str = ".*_foot"
    """Names of its feet."""

    speed_range: tuple[float, float] = (0.3, 0.8)
    """Speeds to draw from [m/s]. Default 0.3 to 0.8."""

    reach_distance: float = 0.2
    """Horizontal distance of the base that is at the goal [m]. Default 0.2."""

    reach_steps: int = 5
    """Steps at the goal, not necessarily in a row, after which one more makes the next goal current. Default 5."""

    contact_force: float = 2.0
    """Force on a foot that is a contact [N]. Default 2."""

    look_interval: int = 5
    """Policy steps between two looks at the heading errors. Default 5."""
