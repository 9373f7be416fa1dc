"""How an episode of the Control Suite's tasks begins."""

from __future__ import annotations

import torch
from isaaclab.envs import ManagerBasedRLEnv
from isaaclab.managers import EventTermCfg, ManagerTermBase
from isaaclab.utils.math import quat_mul

from .starts import draw_starts


class ResetAnyhow(ManagerTermBase):
    """Puts the humanoid into a random collision-free pose in the air, at rest."""

    def __init__(self, cfg: EventTermCfg, env: ManagerBasedRLEnv) -> None:
        """Draw the pool of states."""
        super().__init__(cfg, env)
        params = cfg.params
        pool = draw_starts(env.cfg.facts(), params["pool_size"], params["height"], params["seed"])
        self._quat, self._joints = (torch.tensor(part, dtype=torch.float32, device=env.device) for part in pool)

    def __call__(
        self, env: ManagerBasedRLEnv, env_ids: torch.Tensor | slice, pool_size: int, height: float, seed: int
    ) -> None:
        """Begin episodes.

        Args:
            env: The environment.
            env_ids: Environments that begin an episode.
            pool_size: Number of different states, each at any heading.
            height: Of the torso above the ground [m].
            seed: Of the pool.
        """
        robot = env.scene["robot"]
        pose = robot.data.default_root_pose.torch[env_ids].clone()
        chosen = torch.randint(pool_size, (len(pose),), device=env.device)
        half_yaw = torch.pi * torch.rand(len(pose), device=env.device)
        zero = torch.zeros_like(half_yaw)
        turn = torch.stack([zero, zero, half_yaw.sin(), half_yaw.cos()], dim=-1)
        pose[:, :3] = env.scene.env_origins[env_ids]
        pose[:, 2] += height
        pose[:, 3:] = quat_mul(turn, self._quat[chosen])
        position = self._joints[chosen]
        robot.write_root_pose_to_sim_index(root_pose=pose, env_ids=env_ids)
        robot.write_root_velocity_to_sim_index(root_velocity=torch.zeros_like(pose[:, :6]), env_ids=env_ids)
        robot.write_joint_position_to_sim_index(position=position, env_ids=env_ids)
        robot.write_joint_velocity_to_sim_index(velocity=torch.zeros_like(position), env_ids=env_ids)
