"""The table of tasks. A new task is a new row: its environment, its PPO agent, its metric and what populations change.

Entropy scales of the manipulation tasks are those of SAPG's and EPO's published commands; CPO's paper has others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from epo_lab.configs.presets import agent_entry_points
from epo_lab.population.pbt import PbtOptions

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


def _kuka(name: str, env: str, entropy: float, **cpo: Any) -> Task:
    return Task(
        env=f"allegro_kuka.{env}",
        agent="allegro_kuka.agents_cfg:KukaLstmCfg",
        metric=SUCCESSES,
        default="epo",
        models={"mlp": "allegro_kuka.agents_cfg:KukaMlpCfg"},
        experiment_name=f"kuka_{name}",
        population={
            "fitness": "extras:successes",
            "ga_gamma": 0.3,
            # below one success an episode a lucky one tells nothing
            "fitness_floor": 1.0,
            # with 23 and 46 actions genes twice as far apart make policies that learn nothing from each other
            "latent_init_std": 1.0,
            "entropy_coef_scale": entropy,
        },
        by_agent={"cpo": cpo},
    )


def _in_hand(hand: str, entropy: float, **cpo: Any) -> Task:
    return Task(
        env=f"in_hand.{hand.lower()}_cfg:{hand}ReorientEnvCfg",
        agent=f"in_hand.agents_cfg:{hand}PpoCfg",
        experiment_name=f"{hand.lower()}_hand_reorient",
        population={"ga_gamma": 0.3, "latent_init_std": 1.0, "entropy_coef_scale": entropy},
        by_agent={
            "cpo": {"discriminator_hidden_dims": (1024, 1024, 512, 512), **cpo},
            # here the reference mutates the learning rate too
            "pbt": {"pbt_mutated": {**PbtOptions().pbt_mutated, "learning_rate": "factor"}},
        },
    )


WALKS = {"ga_gamma": 0.5}
"""Populations of walkers: the spread of eq. 3 that the paper sets for locomotion."""

TASKS = {
    "Epo-Kuka-OneArm-Regrasp-v0": _kuka("onearm_regrasp", "one_arm_cfg:RegraspEnvCfg", 0.0),
    "Epo-Kuka-OneArm-Throw-v0": _kuka("onearm_throw", "one_arm_cfg:ThrowEnvCfg", 0.0, attraction_temperature=0.1),
    "Epo-Kuka-OneArm-Reorient-v0": _kuka("onearm_reorient", "one_arm_cfg:ReorientEnvCfg", 0.005),
    "Epo-Kuka-TwoArm-Regrasp-v0": _kuka("twoarm_regrasp", "two_arm_cfg:RegraspEnvCfg", 0.002, entropy_coef_scale=0.0),
    "Epo-Kuka-TwoArm-Reorient-v0": _kuka(
        "twoarm_reorient", "two_arm_cfg:ReorientEnvCfg", 0.002, entropy_coef_scale=0.005
    ),
    "Epo-Kuka-TwoArm-Reorient-Hole-v0": _kuka(
        "twoarm_reorient_hole", "two_arm_cfg:HoleEnvCfg", 0.002, entropy_coef_scale=0.005
    ),
    "Epo-Kuka-TwoArm-Reorient-Partition-v0": _kuka(
        "twoarm_reorient_partition", "two_arm_cfg:PartitionEnvCfg", 0.002, entropy_coef_scale=0.005
    ),
    "Epo-Kuka-TwoArm-Reorient-Barrier-v0": _kuka(
        "twoarm_reorient_barrier", "two_arm_cfg:BarrierEnvCfg", 0.002, entropy_coef_scale=0.005
    ),
    # SAPG's best run has an entropy bonus with the Shadow hand and none with the Allegro hand
    "Epo-AllegroHand-Reorient-v0": _in_hand(
        "Allegro", 0.0, attraction=5.0e-4, attraction_temperature=0.1, adversarial_coef=0.001
    ),
    "Epo-ShadowHand-Reorient-v0": _in_hand("Shadow", 0.005, adversarial_coef=0.01),
    "Epo-A1-Parkour-v0": Task(
        "parkour.env_cfg:A1ParkourEnvCfg",
        "parkour.agents_cfg:A1ParkourPpoCfg",
        metric=LEVEL,
        population={
            **WALKS,
            "fitness": "extras:terrain_level",
            "fitness_floor": 0.5,
            # an environment's level is its last agent's work for some episodes
            "fitness_min_episodes": 3,
            "bounds_loss_coef": 1.0e-5,
        },
    ),
    "Epo-A1-Flat-v0": Task("velocity.a1_cfg:A1FlatEnvCfg", "velocity.agents_cfg:A1FlatPpoCfg", population=WALKS),
    "Epo-Anymal-Flat-v0": Task(
        "velocity.anymal_cfg:AnymalFlatEnvCfg", "velocity.agents_cfg:AnymalFlatPpoCfg", population=WALKS
    ),
    "Epo-Humanoid-Run-v0": Task(
        "humanoid.env_cfg:HumanoidRunEnvCfg", "humanoid.agents_cfg:HumanoidRunPpoCfg", population=WALKS
    ),
}


def register_all() -> None:
    """Register every row with Gymnasium, in the way of Isaac Lab's own tasks."""
    for name, task in TASKS.items():
        if name in gym.registry:
            continue
        changes: dict[str, Any] = dict(task.population)
        if task.by_agent:
            changes["by_agent"] = task.by_agent
        if task.experiment_name:
            changes["experiment_name"] = task.experiment_name
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
                    **changes,
                ),
            },
        )
