"""The table of tasks. A new task is a new row: its environment, its PPO agent, its metric and what populations change.

Entropy scales of the manipulation tasks are those of SAPG's and EPO's published commands; CPO's paper has others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from epo_lab.configs.presets import PBT_MUTATED, agent_entry_points

Settings = dict[str, Any]

SUCCESSES, RETURN, LEVEL = "Metrics/successes", "Metrics/episode_return", "Metrics/terrain_level"


@dataclass(frozen=True)
class Task:
    """One task; classes are named as ``module:Class`` inside this package."""

    env: str
    """Config of the environment."""
    agent: str
    """Config of its PPO agent."""
    metric: str = RETURN
    """Log tag of the score."""
    default: str = "ppo"
    """Agent that is taken if none is named."""
    models: dict[str, str] = field(default_factory=dict)
    """More configs of the agent, by the suffix of their names."""
    experiment_name: str | None = None
    """Folder of the task's runs. Default None: the agent config's."""
    population: dict[str, Any] = field(default_factory=dict)
    """Settings of the algorithm for all populations on this task."""
    by_agent: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Settings of the algorithm for single agents."""


def _kuka(name: str, env: str, entropy: float, cpo: Settings | None = None) -> Task:
    return Task(
        env=f"allegro_kuka.{env}",
        agent="allegro_kuka.agents_cfg:KukaLstmCfg",
        metric=SUCCESSES,
        default="epo",
        models={"mlp": "allegro_kuka.agents_cfg:KukaMlpCfg"},
        experiment_name=f"kuka_{name}",
        population={
            # successes are out of reach in the hours of a CPU: agents are ranked by their return there
            "fitness": {"source": {"gpu": "extras:successes", "cpu": "return"}},
            "evolution": {
                "gamma": 0.3,
                # below one success an episode a lucky one tells nothing
                "floor": {"gpu": 1.0, "cpu": None},
                "warmup_steps": {"gpu": 8138, "cpu": 1200},
                "interval_steps": {"gpu": 814, "cpu": 500},
            },
            # with 23 and 46 actions genes twice as far apart make policies that learn nothing from each other
            "genes": {"init_std": 1.0},
            "entropy_coef_scale": entropy,
        },
        by_agent={
            "cpo": cpo or {},
            # every success gives an episode more time: by time, a new agent's short ones count no less than long ones
            "epo": {"fitness": {"source": {"gpu": "rate:successes", "cpu": "return"}}},
        },
    )


def _in_hand(hand: str, entropy: float, cpo: Settings) -> Task:
    return Task(
        env=f"in_hand.{hand.lower()}_cfg:{hand}ReorientEnvCfg",
        agent=f"in_hand.agents_cfg:{hand}PpoCfg",
        experiment_name=f"{hand.lower()}_hand_reorient",
        population={
            "evolution": {"gamma": 0.3, "warmup_steps": {"gpu": 8138, "cpu": 1500}},
            "genes": {"init_std": 1.0},
            "entropy_coef_scale": entropy,
        },
        by_agent={
            "cpo": {"diversity": {"classifier_dims": (1024, 1024, 512, 512), **cpo}},
            # here the reference mutates the learning rate too
            "pbt": {"pbt": {"mutated": {**PBT_MUTATED, "learning_rate": "factor"}}},
        },
    )


def _franka(name: str, env: str) -> Task:
    return Task(
        env=f"franka.{env}",
        agent="franka.agents_cfg:FrankaPpoCfg",
        experiment_name=f"franka_{name}",
        population={
            "evolution": {"gamma": 0.3, "warmup_steps": {"gpu": 8138, "cpu": 1500}},
            "genes": {"init_std": 1.0},
            "entropy_coef_scale": 0.005,
        },
        by_agent={
            "cpo": {
                "diversity": {"attraction": 5.0e-4, "temperature": 0.1, "classifier_dims": (256, 128, 64)},
                # the leader's data come once more for every follower: mini-batches of the same size
                "num_mini_batches": 8,
            },
            # of the papers only CPO's has these tasks
            "pbt": {"num_agents": 6},
        },
    )


WALKS = {"evolution": {"gamma": 0.5}}
"""Populations of walkers: the spread of eq. 3 that the paper sets for locomotion."""


def _cpo_walks(mini_batches: int, **own: Any) -> dict[str, Settings]:
    """Return the settings of SAPG and CPO in CPO's table 6, for the humanoid and ANYmal; the rest is the presets'.

    Args:
        mini_batches: PPO's on a GPU. CPO's batch is twice as long, and its mini-batches are of the same size.
        own: Settings of the task for both.
    """
    # the leader has no entropy bonus
    common = {"entropy_coef": 0.0, "entropy_coef_scale": 0.002, **own}
    twice = {"gpu": 2 * mini_batches, "cpu": 8, "paper": 4}
    cpo = {"diversity": {"classifier_dims": (768, 512, 256)}, "num_mini_batches": twice}
    return {"sapg": common, "cpo": common | cpo}


def _humanoid(name: str, env: str, kind: str = "Run") -> Task:
    return Task(
        f"humanoid.{env}",
        f"humanoid.agents_cfg:Humanoid{kind}PpoCfg",
        experiment_name=f"humanoid_{name}",
        population={"evolution": {"gamma": 0.5, "warmup_steps": {"gpu": 8138, "cpu": 2500}}},
        by_agent=_cpo_walks(6),
    )


CPO_NEAR, NO_ENTROPY, ENTROPY = (
    {"diversity": {"temperature": 0.1}},
    {"entropy_coef_scale": 0.0},
    {"entropy_coef_scale": 0.005},
)
"""CPO's settings where they differ from those of all populations."""

TASKS = {
    "Epo-Kuka-OneArm-Regrasp-v0": _kuka("onearm_regrasp", "one_arm_cfg:RegraspEnvCfg", 0.0),
    "Epo-Kuka-OneArm-Throw-v0": _kuka("onearm_throw", "one_arm_cfg:ThrowEnvCfg", 0.0, CPO_NEAR),
    "Epo-Kuka-OneArm-Reorient-v0": _kuka("onearm_reorient", "one_arm_cfg:ReorientEnvCfg", 0.005),
    "Epo-Kuka-TwoArm-Regrasp-v0": _kuka("twoarm_regrasp", "two_arm_cfg:RegraspEnvCfg", 0.002, NO_ENTROPY),
    "Epo-Kuka-TwoArm-Reorient-v0": _kuka("twoarm_reorient", "two_arm_cfg:ReorientEnvCfg", 0.002, ENTROPY),
    "Epo-Kuka-TwoArm-Reorient-Hole-v0": _kuka("twoarm_reorient_hole", "two_arm_cfg:HoleEnvCfg", 0.002, ENTROPY),
    "Epo-Kuka-TwoArm-Reorient-Partition-v0": _kuka(
        "twoarm_reorient_partition", "two_arm_cfg:PartitionEnvCfg", 0.002, ENTROPY
    ),
    "Epo-Kuka-TwoArm-Reorient-Barrier-v0": _kuka(
        "twoarm_reorient_barrier", "two_arm_cfg:BarrierEnvCfg", 0.002, ENTROPY
    ),
    # SAPG's best run has an entropy bonus with the Shadow hand and none with the Allegro hand
    "Epo-AllegroHand-Reorient-v0": _in_hand(
        "Allegro", 0.0, {"attraction": 5.0e-4, "temperature": 0.1, "adversarial": 0.001}
    ),
    "Epo-ShadowHand-Reorient-v0": _in_hand("Shadow", 0.005, {"adversarial": 0.01}),
    "Epo-Franka-CubePush-v0": _franka("cube_push", "push_cfg:CubePushEnvCfg"),
    "Epo-Franka-CubeStack-v0": _franka("cube_stack", "stack_cfg:CubeStackEnvCfg"),
    "Epo-A1-Parkour-v0": Task(
        "parkour.env_cfg:A1ParkourEnvCfg",
        "parkour.agents_cfg:A1ParkourPpoCfg",
        metric=LEVEL,
        population={
            "evolution": {"gamma": 0.5, "floor": 0.5},
            # an environment's level is its last agent's work for some episodes
            "fitness": {"source": "extras:terrain_level", "min_episodes": 3},
            "bounds_loss_coef": 1.0e-5,
        },
    ),
    "Epo-A1-Flat-v0": Task("velocity.a1_cfg:A1FlatEnvCfg", "velocity.agents_cfg:A1FlatPpoCfg", population=WALKS),
    "Epo-Anymal-Flat-v0": Task(
        "velocity.anymal_cfg:AnymalFlatEnvCfg",
        "velocity.agents_cfg:AnymalFlatPpoCfg",
        population=WALKS,
        # table 6 has other weights here than the release's files, which are PPO's
        by_agent=_cpo_walks(
            3, value_loss_coef={"gpu": 1.0, "paper": 2.0}, bounds_loss_coef={"gpu": 1.0e-3, "paper": 1.0e-4}
        ),
    ),
    "Epo-Humanoid-Run-v0": _humanoid("run", "env_cfg:HumanoidRunEnvCfg"),
    "Epo-Humanoid-Walk-v0": _humanoid("walk", "control_suite_cfg:HumanoidWalkEnvCfg", "ControlSuite"),
    "Epo-Humanoid-Stand-v0": _humanoid("stand", "control_suite_cfg:HumanoidStandEnvCfg", "ControlSuite"),
}


def register_all() -> None:
    """Register every row with Gymnasium, in the way of Isaac Lab's own tasks."""
    for name, task in TASKS.items():
        if name in gym.registry:
            continue
        gym.register(
            id=name,
            entry_point="epo_tasks.common.env:EpoEnv",
            disable_env_checker=True,
            kwargs={
                "env_cfg_entry_point": f"epo_tasks.{task.env}",
                "default_agent": "rsl_rl",
                "metric": task.metric,
                **agent_entry_points(
                    f"epo_tasks.{task.agent}",
                    default=task.default,
                    models={suffix: f"epo_tasks.{path}" for suffix, path in task.models.items()},
                    experiment_name=task.experiment_name,
                    algorithm=task.population,
                    by_agent=task.by_agent,
                ),
            },
        )
