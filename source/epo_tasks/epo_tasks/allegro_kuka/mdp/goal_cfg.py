"""Config of the goal of the Allegro-Kuka tasks. Lengths in metres, in the frame of the environment."""

from collections.abc import Callable
from dataclasses import MISSING

import isaaclab.sim as sim_utils
from isaaclab.managers import CommandTermCfg
from isaaclab.markers import VisualizationMarkersCfg
from isaaclab.utils import configclass

Range = tuple[float, float]


@configclass
class PlaceCfg:
    """A box to draw positions from."""

    x: Range = MISSING
    """Least and largest x."""

    y: Range = MISSING
    """Least and largest y."""

    z: Range = MISSING
    """Least and largest z."""

    either_side: bool = False
    """Whether x changes its sign with probability one half. Default False."""


@configclass
class GoalCommandCfg(CommandTermCfg):
    """Where the object shall go, and when it has arrived. Episodes hold many goals, one after the other."""

    class_type: type | Callable | str = "{DIR}.goal:GoalCommand"
    resampling_time_range: Range = (1.0e9, 1.0e9)
    """A goal changes when it is reached, not with time."""

    object_name: str = "object"
    """Scene entity to be moved."""

    arm_names: tuple[str, ...] = ("robot",)
    """Scene entities that move it."""

    bucket_name: str | None = None
    """Scene entity whose inside is the goal. Default None: the goal is a point or pose in the air."""

    bucket_depth: float = 0.05
    """Height of the goal above the origin of the bucket. Default 0.05."""

    object_start: PlaceCfg = MISSING
    """Where the object is released, turned at random."""

    place: PlaceCfg = MISSING
    """Where goals (or the bucket) are."""

    pose: bool = False
    """Whether the goal is a pose, compared at four corners, and not only a position. Default False."""

    replace_object: bool = True
    """Whether the object is released anew after a success. Default True."""

    near_steps: int = 30
    """Steps near the goal, not necessarily in a row, that make a success. Default 30."""

    goal_length: int = 400
    """Steps without a success that end an episode. Default 400."""

    max_successes: int = 50
    """Successes that end an episode. Default 50."""

    keypoint_scale: float = 1.5
    """Factor on the corners of the object, and on the tolerance of all tasks. Default 1.5."""

    lift_height: float = 0.15
    """Height above the start, minus 0.05, beyond which the object counts as lifted. Default 0.15."""

    tolerance: Range = (0.075, 0.01)
    """Largest distance of a near step, before the keypoint scale: at the start and at the end of the curriculum."""

    tolerance_factor: float = 0.9
    """Factor of one change of the tolerance. Default 0.9."""

    tolerance_successes: float = 3.0
    """Mean successes of the last episodes at which the tolerance changes. Default 3."""

    tolerance_interval: int = 300
    """Least number of steps between two changes. Default 300; IsaacGymEnvs and SAPG use 3,000."""

    point_marker: VisualizationMarkersCfg = VisualizationMarkersCfg(
        prim_path="/Visuals/Goal",
        markers={
            "goal": sim_utils.SphereCfg(
                radius=0.01875, visual_material=sim_utils.PreviewSurfaceCfg(diffuse_color=(0.6, 0.72, 0.98))
            )
        },
    )
    """Marker of a goal without orientation."""

    pose_marker: VisualizationMarkersCfg = VisualizationMarkersCfg(
        prim_path="/Visuals/Goal",
        markers={
            "goal": sim_utils.CuboidCfg(
                size=(1.0, 1.0, 1.0),
                visual_material=sim_utils.PreviewSurfaceCfg(diffuse_color=(0.6, 0.72, 0.98), opacity=0.5),
            )
        },
    )
    """Marker of a pose; it is given the edges of the environment's own object."""
