"""What the walking robots share: a scene, joint targets around a pose, a trunk that differs, rewards for tracking."""

from __future__ import annotations

import isaaclab.sim as sim_utils
from isaaclab.assets import AssetBaseCfg
from isaaclab.envs import mdp
from isaaclab.managers import EventTermCfg, RewardTermCfg, SceneEntityCfg
from isaaclab.scene import InteractiveSceneCfg
from isaaclab.utils import configclass

from epo_lab.configs.sizes import size
from epo_tasks.robots.facts import RobotFacts

from .actions_cfg import JointTargetCfg
from .env_cfg import EpoEnvCfg


@configclass
class LeggedSceneCfg(InteractiveSceneCfg):
    """A light, and as many robots as the size of the run says."""

    num_envs = size(4096, cpu=512, paper=24576)
    light = AssetBaseCfg(prim_path="/World/light", spawn=sim_utils.DomeLightCfg(intensity=2000.0))


@configclass
class LeggedEnvCfg(EpoEnvCfg):
    """Base of the walkers; those who are pushed while they train are left alone when they play."""

    def play_mode(self) -> None:
        """Play without pushes."""
        super().play_mode()
        if hasattr(self.events, "push"):
            self.events.push = None


def joint_targets(facts: RobotFacts, scale: float, limit: float | None = None) -> JointTargetCfg:
    """Return an action that moves the targets of all joints around the default pose.

    Args:
        facts: The robot.
        scale: Radians from the default pose for an action of 1.
        limit: Size of an action beyond which it has no more effect. Defaults to None: there is none.
    """
    pose = facts.extras["default_joint_pos"]
    most = None if limit is None else scale * limit
    return JointTargetCfg(
        asset_name="robot",
        joint_names=list(facts.joint_names),
        preserve_order=True,
        scale=scale,
        use_default_offset=True,
        clip=None if most is None else {name: (angle - most, angle + most) for name, angle in pose.items()},
    )


def trunk_mass(bounds: tuple[float, float], operation: str, **more: str) -> EventTermCfg:
    """Return an event that changes the mass of the trunk, once for each robot.

    Args:
        bounds: Least and largest change.
        operation: ``add`` [kg] or ``scale``.
        more: More parameters of Isaac Lab's event.
    """
    trunk = SceneEntityCfg("robot", body_names="trunk")
    params = {"asset_cfg": trunk, "mass_distribution_params": bounds, "operation": operation, **more}
    return EventTermCfg(func=mdp.randomize_rigid_body_mass, mode="startup", params=params)


def trunk_com(x: float, y: float, z: float) -> EventTermCfg:
    """Return an event that moves the trunk's centre of mass by up to these distances [m], once for each robot."""
    ranges = {axis: (-most, most) for axis, most in (("x", x), ("y", y), ("z", z))}
    params = {"asset_cfg": SceneEntityCfg("robot", body_names="trunk"), "com_range": ranges}
    return EventTermCfg(func=mdp.randomize_rigid_body_com, mode="startup", params=params)


def tracking(function: str, weight: float) -> RewardTermCfg:
    """Return one of Isaac Lab's rewards for following the velocity command, ``exp(-error^2 / 0.25)``."""
    return RewardTermCfg(
        func=getattr(mdp, function), weight=weight, params={"command_name": "base_velocity", "std": 0.5}
    )
