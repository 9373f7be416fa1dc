"""How well the physics of the Allegro-Kuka tasks stands random full-range actions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from isaaclab.utils.math import quat_apply_inverse

from epo_tasks.allegro_kuka.scene_cfg import TABLE_TOP
from epo_tasks.robots.facts import Shape, rotation_matrix
from epo_tasks.robots.kuka_allegro import FACTS

LIMIT_MARGIN = 0.05
"""A joint is past its limit beyond this angle [rad]."""
FAST = 10.0
"""An object faster than this was shot rather than thrown [m/s]."""
BETWEEN = 15
"""Moments between two control steps at which the way of an object is compared with the arm's."""
JUST_PLACED = 6
"""Control steps in which an object that was placed into a hand may still be on its way out."""

COUNTED = (
    "non_finite",
    "object_in_table",
    "through_table",
    "object_in_arm",
    "through_arm",
    "placed_in_arm",
    "joint_past_limit",
    "object_fast",
    "drops",
)
"""What is counted, in object-steps (joints: in arm-steps)."""


class TableWatch:
    """Tells objects that are deep in the table, and those that came out of it elsewhere than at the top."""

    def __init__(self, num_envs: int, half: tuple[float, float], device: str = "cpu") -> None:
        """Take half edges of the table's top [m]."""
        self._half = torch.tensor(half, device=device)
        self._inside = self._over = torch.zeros(num_envs, dtype=torch.bool, device=device)

    def look(
        self, place: torch.Tensor, ended: torch.Tensor, dropped: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return who is inside now, and who was a step ago and has passed through.

        Args:
            place: Middles of the objects [m], of new episodes where the last one ended. Shape is (num_envs, 3).
            ended: Whose episode ended in this step.
            dropped: Whose episode ended because the object fell to the floor.
        """
        over = (place[:, :2].abs() < self._half - 0.01).all(dim=-1)
        below_top, below_bottom = place[:, 2] < TABLE_TOP - 0.01, place[:, 2] < TABLE_TOP - 0.29
        inside = over & below_top & ~below_bottom
        left_below = self._inside & below_top & ~inside
        went_under = self._over & over & below_bottom
        through = (left_below | went_under) & ~ended | self._inside & dropped
        self._inside, self._over = inside, over & ~below_bottom
        return inside, through


class Solids:
    """The collision shapes of the arms, to tell whether a point is inside one."""

    def __init__(self, arm: Any) -> None:
        """Take the shapes of an arm of a running scene."""
        self._arm = arm
        device = arm.data.body_link_pose_w.torch.device
        shapes = [(link.name, shape) for link in FACTS.links for shape in link.shapes]
        self._bodies = [arm.body_names.index(name) for name, _ in shapes]
        self._place = torch.tensor([shape.xyz for _, shape in shapes], dtype=torch.float, device=device)
        self._axes = torch.tensor(
            np.stack([rotation_matrix(shape.rpy) for _, shape in shapes]), dtype=torch.float, device=device
        )
        sizes = [_half_sizes(shape) for _, shape in shapes]
        self._half = torch.tensor([half for half, _ in sizes], device=device)
        self._radius = torch.tensor([radius for _, radius in sizes], device=device)

    def poses(self) -> torch.Tensor:
        """Return the poses of the links that carry the shapes. Shape is (num_envs, num_shapes, 7)."""
        return self._arm.data.body_link_pose_w.torch[:, self._bodies]

    def contain(self, point: torch.Tensor, poses: torch.Tensor | None = None) -> torch.Tensor:
        """Tell which world points, one an environment, are inside a shape of its arm, now or with other poses."""
        poses = self.poses() if poses is None else poses
        local = quat_apply_inverse(poses[..., 3:], point.unsqueeze(-2) - poses[..., :3]) - self._place
        local = torch.einsum("...si,sij->...sj", local, self._axes)
        # distance to the core of the shape (a box, a segment or a point), which its radius surrounds
        outside = (local.abs() - self._half).clamp(min=0.0).norm(dim=-1)
        return (outside <= self._radius).any(dim=-1)


class ArmWatch:
    """Tells objects whose middle is inside a link, and those that went through one between two looks."""

    def __init__(self, arm: Any) -> None:
        """Take an arm of a running scene."""
        self._solids = Solids(arm)
        self._last: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None

    def look(self, point: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return who is inside now, and who is not and was not but met a link's inside on the straight way here.

        Args:
            point: Middles of the objects in the world [m]. Shape is (num_envs, 3).
        """
        poses, inside = self._solids.poses().clone(), self._solids.contain(point)
        through = torch.zeros_like(inside)
        if self._last is not None:
            last_point, last_poses, was_inside = self._last
            same = (last_poses[..., 3:] * poses[..., 3:]).sum(dim=-1, keepdim=True) >= 0.0
            # of the two signs of a quaternion the nearer one
            near = torch.cat([poses[..., :3], torch.where(same, poses[..., 3:], -poses[..., 3:])], dim=-1)
            share = torch.linspace(0.0, 1.0, BETWEEN + 2, device=point.device)[1:-1]
            between = torch.lerp(last_poses, near, share.view(-1, 1, 1, 1))
            between[..., 3:] = torch.nn.functional.normalize(between[..., 3:], dim=-1)
            met = self._solids.contain(torch.lerp(last_point, point, share.view(-1, 1, 1)), between).any(dim=0)
            through = met & ~inside & ~was_inside
        self._last = (point.clone(), poses, inside)
        return inside, through


def _half_sizes(shape: Shape) -> tuple[tuple[float, float, float], float]:
    """Return half edges of the core and the radius around it; a cylinder counts as the box inside it."""
    if shape.type == "box":
        return (shape.size["x"] / 2.0, shape.size["y"] / 2.0, shape.size["z"] / 2.0), 0.0
    radius, half = shape.size["radius"], shape.size.get("length", 0.0) / 2.0
    if shape.type == "cylinder":
        return (radius / 2**0.5, radius / 2**0.5, half), 0.0
    return (0.0, 0.0, half), radius


def measure_stability(
    env: Any, steps: int, seed: int = 0, report: Callable[[int], None] = lambda done: None
) -> dict[str, float]:
    """Step an environment with random actions and count what should not happen.

    Args:
        env: The environment, reset.
        steps: Control steps.
        seed: Seed of the actions.
        report: Called after each tenth of the way with the number of steps done.
    """
    goal = env.command_manager.get_term("goal")
    watches = [ArmWatch(arm) for arm in goal.arms]
    table = TableWatch(env.num_envs, (0.55 if len(goal.arms) > 1 else 0.2375, 0.2), env.device)
    generator = torch.Generator().manual_seed(seed)
    counts = {name: torch.zeros((), dtype=torch.long, device=env.device) for name in COUNTED}
    # Resets put the arm down without looking where the object falls, as the reference's do. An overlap that is there
    # from the start tells nothing about contacts, so that it is counted by itself until the object was outside once.
    overlaps_since_placed = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
    fastest_joint, fastest_object = torch.zeros((), device=env.device), torch.zeros((), device=env.device)
    begin = time.perf_counter()
    for step in range(steps):
        action = 2.0 * torch.rand(env.num_envs, env.action_manager.total_action_dim, generator=generator) - 1.0
        obs, reward, *_ = env.step(action.to(env.device))
        # observations are clipped, so that an infinite velocity is seen in the state only
        values = [obs["policy"], reward.unsqueeze(1), goal.object.data.root_link_pose_w.torch]
        values += [goal.object.data.root_com_vel_w.torch]
        values += [part.torch for arm in goal.arms for part in (arm.data.joint_pos, arm.data.joint_vel)]
        counts["non_finite"] += (~torch.isfinite(torch.cat(values, dim=1))).any(dim=-1).sum()
        place = goal.object_pos
        dropped = env.termination_manager.get_term("object_dropped")
        in_table, through = table.look(place, env.reset_buf, dropped)
        counts["object_in_table"] += in_table.sum()
        counts["through_table"] += through.sum()
        counts["drops"] += dropped.sum()
        looks = [watch.look(place + env.scene.env_origins) for watch in watches]
        inside, met = (torch.stack(who).any(dim=0) for who in zip(*looks, strict=True))
        placed = env.reset_buf | (goal.success & goal.cfg.replace_object)
        overlaps_since_placed = placed | (overlaps_since_placed & inside)
        counts["object_in_arm"] += (inside & ~overlaps_since_placed).sum()
        just_placed = goal.steps_since_placed <= JUST_PLACED
        counts["through_arm"] += (met & ~placed & ~just_placed).sum()
        counts["placed_in_arm"] += ((inside & overlaps_since_placed | met & just_placed) & ~placed).sum()
        for arm in goal.arms:
            low, high = arm.data.joint_pos_limits.torch.unbind(dim=-1)
            angle = arm.data.joint_pos.torch
            counts["joint_past_limit"] += ((angle < low - LIMIT_MARGIN) | (angle > high + LIMIT_MARGIN)).any(-1).sum()
            fastest_joint = torch.maximum(fastest_joint, arm.data.joint_vel.torch.abs().max())
        speed = goal.object.data.root_com_vel_w.torch[:, :3].norm(dim=-1)
        counts["object_fast"] += (speed > FAST).sum()
        fastest_object = torch.maximum(fastest_object, speed.max())
        if (step + 1) * 10 // steps > step * 10 // steps:
            report(step + 1)
    return {
        "env_steps": env.num_envs * steps,
        **{name: int(count) for name, count in counts.items()},
        "fastest_joint": round(float(fastest_joint), 1),
        "fastest_object": round(float(fastest_object), 1),
        "steps_per_s": round(env.num_envs * steps / (time.perf_counter() - begin)),
    }
