"""The Franka cube tasks in tests: put things in their places, judge a moment, follow a scripted hand."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import torch

from support.command import ROOT

TOOLS = ROOT / "tools"
if str(TOOLS) not in sys.path:
    sys.path.append(str(TOOLS))

TABLE_TOP = 1.025
PUSH, STACK = "Epo-Franka-CubePush-v0", "Epo-Franka-CubeStack-v0"


def goal_of(env: Any) -> Any:
    """Return the goal term."""
    return env.command_manager.get_term("goal")


def put(env: Any, name: str, position: torch.Tensor) -> None:
    """Put objects at positions of their environments [m], upright and at rest."""
    pose = torch.cat([position + env.scene.env_origins, torch.tensor([0.0, 0.0, 0.0, 1.0]).expand(len(position), 4)], 1)
    env.scene[name].write_root_pose_to_sim_index(root_pose=pose)
    env.scene[name].write_root_velocity_to_sim_index(root_velocity=torch.zeros(len(position), 6))


def go_home(env: Any) -> None:
    """Put the arm into its default pose, at rest."""
    robot = env.scene["robot"]
    position = robot.data.default_joint_pos.torch.clone()
    robot.write_joint_position_to_sim_index(position=position)
    robot.write_joint_velocity_to_sim_index(velocity=torch.zeros_like(position))
    env.sim.forward()
    env.scene.update(0.0)


def judge(env: Any, steps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return reward, termination and truncation of this very moment, ``steps`` after the beginning of the episode."""
    env.common_step_counter += 1
    env.episode_length_buf[:] = steps
    env.reset_buf = env.termination_manager.compute()
    reward = env.reward_manager.compute(env.step_dt).clone()
    return reward, env.termination_manager.terminated.clone(), env.termination_manager.time_outs.clone()


@dataclass
class Outcome:
    """What a scripted hand reached in the first episode of every environment."""

    returns: torch.Tensor
    succeeded: torch.Tensor
    length: torch.Tensor
    held: torch.Tensor
    """Whether the cube was at least 0.17 m above the table in the last step but one."""
    width: torch.Tensor
    """Distance of the fingers then, both together [m]."""


def follow(env: Any, plan: str) -> Outcome:
    """Let a scripted hand play one episode in every environment, which was just reset."""
    from scripted.franka import ScriptedHand

    num, goal, hand = env.num_envs, goal_of(env), ScriptedHand(env, plan)
    returns, length = torch.zeros(num), torch.zeros(num)
    running, succeeded = torch.ones(num, dtype=torch.bool), torch.zeros(num, dtype=torch.bool)
    height, width = torch.zeros(num), torch.zeros(num)
    for _ in range(env.max_episode_length):
        height, width = goal.cube_pos[:, 2] - TABLE_TOP, goal.hand.fingers().sum(dim=1)
        _, reward, terminated, truncated, extras = env.step(hand.act())
        returns += reward * running
        length += running
        last = extras["last_episode"]["success_rate"] > 0.5
        succeeded |= running & terminated & last
        running &= ~(terminated | truncated)
        if not running.any():
            break
    return Outcome(returns, succeeded, length, height > 0.17, width)
