"""Blocks of the observation, in environment axes. Blocks of several arms are those of the first arm, then the next."""

from __future__ import annotations

import torch
from isaaclab.envs import ManagerBasedRLEnv

from .goal import GoalCommand

PALM_BODY = "iiwa7_link_7"


def current(env: ManagerBasedRLEnv) -> GoalCommand:
    """Return the goal with hands and object measured."""
    goal = env.command_manager.get_term("goal")
    assert isinstance(goal, GoalCommand)
    return goal.measure()


def joint_positions(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return all joint angles, scaled to +-1 at their limits."""
    return torch.cat([_scaled(arm.data) for arm in current(env).arms], dim=-1)


def joint_velocities(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return all joint velocities [rad/s]."""
    return torch.cat([arm.data.joint_vel.torch for arm in current(env).arms], dim=-1)


def palm_positions(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the palm centres [m]."""
    return current(env).palms.flatten(1)


def palm_states(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return quaternion (x, y, z, w), linear and angular velocity of the palm bodies."""
    blocks = []
    for arm in current(env).arms:
        body = arm.body_names.index(PALM_BODY)
        blocks += [arm.data.body_link_quat_w.torch[:, body], arm.data.body_com_vel_w.torch[:, body]]
    return torch.cat(blocks, dim=-1)


def object_state(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return quaternion (x, y, z, w), linear and angular velocity of the object."""
    data = current(env).object.data
    return torch.cat([data.root_link_quat_w.torch, data.root_com_vel_w.torch], dim=-1)


def fingertips_from_palm(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the fingertip points minus the palm centre of their arm [m]."""
    goal = current(env)
    tips = goal.tips.unflatten(1, (len(goal.arms), -1))
    return (tips - goal.palms.unsqueeze(2)).flatten(1)


def keypoints_from_palm(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the object's keypoints minus the palm centre, for each arm [m]."""
    goal = current(env)
    return (goal.keypoints.unsqueeze(1) - goal.palms.unsqueeze(2)).flatten(1)


def keypoints_from_goal(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the object's keypoints minus the goal's [m]."""
    goal = current(env)
    return (goal.keypoints - goal.goal_keypoints).flatten(1)


def object_scales(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the object's edges, in multiples of 5 cm."""
    return current(env).object_scales


def best_distance(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the least distance to this goal so far [m]."""
    goal = current(env)
    return torch.where(goal.best_distance.isinf(), goal.distance, goal.best_distance).unsqueeze(-1)


def best_tip_distances(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the least distance of each fingertip to the object since it was placed [m]."""
    goal = current(env)
    return torch.where(goal.best_tip_distances.isinf(), goal.tip_distances, goal.best_tip_distances)


def lifted(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return whether the object is lifted, 0 or 1."""
    return current(env).lifted.float().unsqueeze(-1)


def goal_steps(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return ln(steps / 10 + 1), with the steps since the goal was set."""
    return (current(env).goal_steps / 10.0 + 1.0).log().unsqueeze(-1)


def successes(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return ln(successes + 1)."""
    return (current(env).successes + 1.0).log().unsqueeze(-1)


def last_reward(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the reward of this step times 0.01; 0 at the start of an episode."""
    reward = getattr(env, "reward_buf", None)
    if reward is None:
        return torch.zeros(env.num_envs, 1, device=env.device)
    return (0.01 * torch.where(env.episode_length_buf == 0, 0.0, reward)).unsqueeze(-1)


def obstacle_pose(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return position [m] and quaternion (x, y, z, w) of the movable obstacle."""
    data = env.scene["obstacle"].data
    return torch.cat([data.root_link_pos_w.torch - env.scene.env_origins, data.root_link_quat_w.torch], dim=-1)


def _scaled(data) -> torch.Tensor:
    low, high = data.joint_pos_limits.torch.unbind(dim=-1)
    return (2.0 * data.joint_pos.torch - high - low) / (high - low)
