"""Config of the goal of the in-hand tasks. Lengths in metres, in the frame of the environment."""

from collections.abc import Callable
from dataclasses import MISSING

import isaaclab.sim as sim_utils
from isaaclab.managers import CommandTermCfg
from isaaclab.markers import VisualizationMarkersCfg
from isaaclab.utils import configclass

Vector = tuple[float, float, float]


@configclass
class OrientationGoalCfg(CommandTermCfg):
    """How the cube shall be turned. Episodes hold many goals, one after the other."""

    class_type: type | Callable | str = "{DIR}.goal:OrientationGoal"
    resampling_time_range: tuple[float, float] = (1.0e9, 1.0e9)
    """A goal changes when it is reached, not with time."""

    object_name: str = "object"
    """Scene entity to be turned."""

    edge: float = MISSING
    """Edge of the cube."""

    tolerance: float = 0.1
    """Angle at which a goal is reached [rad]. Default 0.1."""

    position_offset: Vector = (0.0, 0.0, -0.04)
    """Where the cube should stay, from where it starts. Default 4 cm lower."""

    marker_offset: Vector = (0.0, 0.0, 0.12)
    """Where pictures show the goal, from there. Default 12 cm higher, above the cube."""

    marker: VisualizationMarkersCfg = VisualizationMarkersCfg(
        prim_path="/Visuals/Goal",
        markers={
            "goal": sim_utils.CuboidCfg(
                size=(1.0, 1.0, 1.0),
                visual_material=sim_utils.PreviewSurfaceCfg(diffuse_color=(0.6, 0.72, 0.98), opacity=0.5),
            )
        },
    )
    """Marker of a goal; it is given the edge of the cube."""
