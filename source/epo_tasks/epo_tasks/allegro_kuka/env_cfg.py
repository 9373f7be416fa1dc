"""What the Allegro-Kuka tasks share."""

from __future__ import annotations

import itertools

import numpy as np
from isaaclab.managers import (
    CurriculumTermCfg,
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from isaaclab.sim import RigidBodyMaterialCfg, SimulationCfg
from isaaclab.utils import configclass
from isaaclab_tasks.utils import PresetCfg, preset

from epo_lab.base.errors import UserError
from epo_lab.configs.sizes import size
from epo_tasks.common.env_cfg import EpoEnvCfg
from epo_tasks.common.physics import ARM_HAND_NEWTON, MANY_CONTACTS, physics_presets
from epo_tasks.common.reward_terms import reward_per_step

from .cuboids import FAMILIES, cuboid_scales
from .mdp import events, observations, rewards, terminations
from .mdp.actions_cfg import SpeedLimitCfg
from .mdp.curriculum import GoalLength
from .mdp.goal_cfg import GoalCommandCfg
from .scene_cfg import KukaSceneCfg, cuboid

STEP_DT = 1.0 / 60.0
PLAY_ENVS = 16


def reward(func, value: float, **params) -> RewardTermCfg:
    """Return a reward of ``value`` a step for each unit of ``func``."""
    return reward_per_step(func, value, STEP_DT, **params)


def observation(func) -> ObservationTermCfg:
    """Return a block of the observation."""
    return ObservationTermCfg(func=func, clip=(-10.0, 10.0))


@configclass
class ObservationsCfg:
    """Everything there is to know, without noise; actor and critic see the same."""

    @configclass
    class PolicyCfg(ObservationGroupCfg):
        """The order is that of the reference."""

        joint_positions = observation(observations.joint_positions)
        joint_velocities = observation(observations.joint_velocities)
        palm_positions = observation(observations.palm_positions)
        palm_states = observation(observations.palm_states)
        object_state = observation(observations.object_state)
        fingertips_from_palm = observation(observations.fingertips_from_palm)
        keypoints_from_palm = observation(observations.keypoints_from_palm)
        keypoints_from_goal = observation(observations.keypoints_from_goal)
        object_scales = observation(observations.object_scales)
        best_distance = observation(observations.best_distance)
        best_tip_distances = observation(observations.best_tip_distances)
        lifted = observation(observations.lifted)
        goal_steps = observation(observations.goal_steps)
        successes = observation(observations.successes)
        last_reward = observation(observations.last_reward)

    policy: PolicyCfg = PolicyCfg()


@configclass
class RewardsCfg:
    """Rewards of all tasks, in their amounts per step. The success bonus sums to 1,000 for a goal."""

    reaching = reward(rewards.reaching, 50.0, until_lifted=True)
    lifting = reward(rewards.lifting, 20.0)
    lifted = reward(rewards.lifted, 300.0)
    progress = reward(rewards.progress, 200.0)
    success = reward(rewards.near_goal, 1000.0)


@configclass
class TerminationsCfg:
    """Ends of all tasks."""

    object_dropped = TerminationTermCfg(func=terminations.object_dropped, params={"height": 0.1})
    enough_successes = TerminationTermCfg(func=terminations.enough_successes)
    goal_time_out = TerminationTermCfg(func=terminations.goal_time_out, time_out=True)


@configclass
class CommandsCfg:
    """The goal."""

    goal: GoalCommandCfg = GoalCommandCfg()


@configclass
class CurriculumCfg:
    """Off; see :attr:`KukaEnvCfg.goal_lengths`."""

    goal_length: CurriculumTermCfg | None = None


def reset_arm(name: str) -> EventTermCfg:
    """Return the event that places an arm."""
    params = {"asset_name": name, "noise": 0.1, "max_velocity": 0.5}
    return EventTermCfg(func=events.reset_arm, mode="reset", params=params)


def speed_limit() -> PresetCfg:
    """Return the term that keeps the object's speeds in bounds on Newton.

    Newton steps a spinning body explicitly: beyond some 200 rad/s a long cuboid in free flight gains energy at every
    step until its velocity is no number any more. PhysX has a limit of its own. And an object that a reset puts into
    the hand is shot out by the contacts, sometimes through the table.
    """
    return preset(default=None, newton_mjwarp=SpeedLimitCfg(asset_name="object"))


@configclass
class KukaEnvCfg(EpoEnvCfg):
    """Base of the tasks."""

    decimation = 2
    # The reference trainer does not bootstrap values at time-outs; False makes the trainer do it.
    is_finite_horizon = True

    object_families: tuple[str, ...] | str = tuple(FAMILIES)
    """Families of cuboids, or the name of one. Default all three."""

    num_object_variants: int | None = size(None, cpu=32)
    """Keep only the first so many of the 947 cuboids (throw: 654). Default None: all."""

    own_objects: list[tuple[float, float, float]] | None = None
    """Edges of other cuboids, in multiples of 5 cm, to use instead. Default None."""

    goal_lengths: list[int] | None = None
    """Steps that a goal may take at first and, stage by stage, later; the last is ``commands.goal.goal_length``. The
    next stage begins when 30 % of the environments lift the object. Playing is always at full length. Default None: at
    full length from the start."""

    sim: SimulationCfg = SimulationCfg(
        dt=STEP_DT / 2.0,
        physics=physics_presets(ARM_HAND_NEWTON, bounce_threshold=0.2, **MANY_CONTACTS),
        physics_material=RigidBodyMaterialCfg(static_friction=1.0, dynamic_friction=1.0, restitution=0.0),
    )
    scene: KukaSceneCfg = KukaSceneCfg()
    commands: CommandsCfg = CommandsCfg()
    observations: ObservationsCfg = ObservationsCfg()
    rewards: RewardsCfg = RewardsCfg()
    terminations: TerminationsCfg = TerminationsCfg()
    curriculum: CurriculumCfg = CurriculumCfg()

    def __post_init__(self):
        super().__post_init__()
        # the time limit is one a goal; an episode of many goals has none of its own
        self.episode_length_s = self.commands.goal.goal_length * STEP_DT

    def object_scales(self) -> np.ndarray:
        """Return the edges of the objects in use, in multiples of 5 cm."""
        if self.own_objects is not None:
            return np.array(self.own_objects)
        families = (self.object_families,) if isinstance(self.object_families, str) else self.object_families
        for name in families:
            if name not in FAMILIES:
                raise UserError(
                    f"env.object_families '{name}' is none of {', '.join(FAMILIES)}; several: '[\"small\",\"big\"]'"
                )
        limit = self.num_object_variants
        if limit is not None and limit < 1:
            raise UserError(f"env.num_object_variants must be at least 1, or null for all, not {limit}")
        return cuboid_scales(families, limit)

    def note(self) -> str:
        """Say which objects are missing."""
        used, all_of_them = len(self.object_scales()), len(type(self)(num_object_variants=None).object_scales())
        objects = f"{used} own" if self.own_objects is not None else f"{used} of {all_of_them}"
        return "" if used == all_of_them else f"{objects} cuboids (env.num_object_variants=null: all)"

    def complete(self) -> None:
        """Fill in the objects, of which environments beyond their number begin again with the first, and the stages."""
        scales = self.object_scales()[: self.scene.num_envs]
        self.scene.object.spawn.assets_cfg = [cuboid(row) for row in scales]
        if self.goal_lengths is not None:
            self._check_goal_lengths()
            params = {"lengths": self.goal_lengths, "lifted_share": 0.3}
            self.curriculum.goal_length = CurriculumTermCfg(func=GoalLength, params=params)

    def _check_goal_lengths(self) -> None:
        lengths, full = self.goal_lengths, self.commands.goal.goal_length
        if isinstance(lengths, (list, tuple)) and all(type(length) is int for length in lengths):
            grow = all(before < after for before, after in itertools.pairwise([0, *lengths]))
            if grow and list(lengths[-1:]) == [full]:
                return
        raise UserError(
            f"env.goal_lengths={lengths} must be whole numbers that grow from above 0 to {full}, the task's "
            "env.commands.goal.goal_length; null: no stages"
        )

    def play_mode(self) -> None:
        """Few environments, goals to be seen, and the tolerance and full length of the evaluation."""
        self.scene.num_envs = min(self.scene.num_envs, PLAY_ENVS)
        goal = self.commands.goal
        goal.debug_vis = True
        goal.tolerance = (goal.tolerance[1], goal.tolerance[1])
        self.goal_lengths = None
