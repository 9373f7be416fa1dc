"""Read physical constants back from an engine, and measure those that it does not report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from isaaclab.utils.math import matrix_from_quat
from isaaclab_ov import tensor_types
from isaaclab_ov.physics import OvPhysxCfg

from epo_tasks.robots.facts import RobotFacts

GRAVITY = 9.81


def on_physx(env: Any) -> bool:
    """Return whether the environment runs on PhysX."""
    return isinstance(env.sim.cfg.physics, OvPhysxCfg)


def advance(env: Any, count: int, watch: Callable[[], torch.Tensor] | None = None) -> torch.Tensor | None:
    """Step the physics and whatever acts before every physics step; no policy, no resets.

    Returns:
        What ``watch`` said before the first step and after each, stacked.
    """
    seen = [] if watch is None else [watch().clone()]
    for _ in range(count):
        env.action_manager.apply_action()
        env.scene.write_data_to_sim()
        env.sim.step(render=False)
        env.scene.update(env.physics_dt)
        if watch is not None:
            seen.append(watch().clone())
    return torch.stack(seen) if seen else None


def surface(env: Any, name: str) -> torch.Tensor:
    """Return static friction, dynamic friction and restitution of all shapes of an asset, from the engine.

    Newton has one friction, which stands for both. Shape is (num_shapes of all environments, 3).
    """
    asset = env.scene[name]
    if on_physx(env):
        articulated = hasattr(asset, "num_joints")
        kind = "SHAPE" if articulated else "RIGID_BODY_SHAPE"
        values = asset.root_view.get_attribute(getattr(tensor_types, f"{kind}_FRICTION_AND_RESTITUTION"))
        return torch.from_numpy(values.numpy()).reshape(-1, 3)
    friction, restitution = (newton_shapes(env, asset, key) for key in ("mu", "restitution"))
    return torch.stack([friction, friction, restitution], dim=-1)


def newton_shapes(env: Any, asset: Any, key: str) -> torch.Tensor:
    """Return a number of Newton's surface for every shape of an asset."""
    model = env.sim.physics_manager.get_model()
    return torch.from_numpy(asset.root_view.get_attribute(f"shape_material_{key}", model).numpy()).flatten()


def place(
    env: Any,
    name: str,
    position: tuple[float, float, float],
    linear: tuple[float, float, float] = (0.0, 0.0, 0.0),
    spin: tuple[float, float, float] = (0.0, 0.0, 0.0),
    upside_down: bool = False,
) -> None:
    """Put an asset at a place of its environment [m], moving [m/s] and spinning [rad/s]."""
    asset, num = env.scene[name], env.num_envs
    pose = torch.zeros(num, 7)
    pose[:, :3] = env.scene.env_origins + torch.tensor(position)
    pose[:, 3 if upside_down else 6] = 1.0
    velocity = torch.tensor([*linear, *spin]).repeat(num, 1)
    asset.write_root_pose_to_sim_index(root_pose=pose)
    asset.write_root_com_velocity_to_sim_index(root_velocity=velocity)


def momentum(robot: Any) -> torch.Tensor:
    """Return the momentum of a robot [kg m/s]. Shape is (num_envs, 3)."""
    return (robot.data.body_mass.torch.unsqueeze(-1) * robot.data.body_com_vel_w.torch[..., :3]).sum(dim=1)


def angular_momentum(robot: Any, facts: RobotFacts) -> torch.Tensor:
    """Return the angular momentum of a robot about its centre of mass [kg m^2/s]. Shape is (num_envs, 3)."""
    links = [facts.link(name) for name in robot.body_names]
    mass = torch.tensor([link.mass for link in links]).unsqueeze(-1)
    inertia = torch.tensor(np.array([link.inertia_matrix for link in links]), dtype=torch.float32)
    position, velocity = robot.data.body_com_pos_w.torch, robot.data.body_com_vel_w.torch
    position = position - (mass * position).sum(dim=1, keepdim=True) / mass.sum()
    linear, spin = velocity[..., :3], velocity[..., 3:].unsqueeze(-1)
    turn = matrix_from_quat(robot.data.body_link_quat_w.torch)
    own = (turn @ inertia @ turn.transpose(-1, -2) @ spin).squeeze(-1)
    return (own + torch.linalg.cross(position, mass * linear)).sum(dim=1)


def friction_of(env: Any, mass: torch.Tensor, watch: Callable[[], torch.Tensor], steps: int) -> torch.Tensor:
    """Return the friction of what slips on level ground: the momentum [kg m/s] it loses over the push from below."""
    change = torch.diff(advance(env, steps, watch)[[0, -1]], dim=0)[0]
    push = change[:, 2] + mass * GRAVITY * steps * env.physics_dt
    return change[:, :2].norm(dim=-1) / push
