"""Configs of the goals of the cube tasks. Lengths in metres, in the frame of the environment."""

from collections.abc import Callable
from dataclasses import MISSING

import isaaclab.sim as sim_utils
from isaaclab.managers import CommandTermCfg
from isaaclab.markers import VisualizationMarkersCfg
from isaaclab.utils import configclass


@configclass
class CubeGoalCfg(CommandTermCfg):
    """Where cubes start, and when they count as lifted."""

    resampling_time_range: tuple[float, float] = (1.0e9, 1.0e9)
    """A goal stays for the whole episode."""

    cube_name: str = "cube"
    """Scene entity to be moved."""

    table_top: float = MISSING
    """Height of the table."""

    edge: float = MISSING
    """Edge of the cube."""

    goal_edge: float = MISSING
    """Edge of the goal's cube."""

    goal_height: float = MISSING
    """Height of the goal's centre at the start."""

    start_range: float = 0.25
    """Largest x and y of both at the start, from the middle of the table. Default 0.25."""

    start_yaw: float = 0.785
    """Largest turn about the vertical at the start [rad]. Default 0.785."""

    lift: float = 0.04
    """How far above the table the cube's centre must be, beyond one edge, to be lifted. Default 0.04."""


@configclass
class PushGoalCfg(CubeGoalCfg):
    """A place on the table that the cube shall come to."""

    class_type: type | Callable | str = "{DIR}.goal:PushGoal"

    tolerance: float = 0.005
    """Horizontal distance at which the cube is there. Default 0.005."""

    marker: VisualizationMarkersCfg = VisualizationMarkersCfg(
        prim_path="/Visuals/Goal",
        markers={
            "goal": sim_utils.CuboidCfg(
                size=(1.0, 1.0, 1.0),
                visual_material=sim_utils.PreviewSurfaceCfg(diffuse_color=(0.0, 0.4, 0.1), opacity=0.5),
            )
        },
    )
    """Marker of the goal; it is given the edge of the cube."""


@configclass
class StackGoalCfg(CubeGoalCfg):
    """Another cube that the cube shall stand on."""

    class_type: type | Callable | str = "{DIR}.goal:StackGoal"

    goal_name: str = "base_cube"
    """Scene entity to stack on."""

    tolerance: float = 0.02
    """Horizontal distance, and error of the height, at which the cube is on top. Default 0.02."""

    release_distance: float = 0.04
    """Distance from the grip site to the cube's centre at which it counts as let go. Default 0.04."""

    aligned: float = 0.8
    """Alignment, 1 at best, from which a step counts as aligned in the log. Default 0.8."""
