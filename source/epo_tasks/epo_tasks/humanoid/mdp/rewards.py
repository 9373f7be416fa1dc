"""Rewards, and the score of the Control Suite."""

from __future__ import annotations

# Isaac Lab's rewards find these under the package's name; without this line they may find others of the same name, if a
# task imported those first.
import isaaclab_tasks.core.locomotion.mdp.observations  # noqa: F401
import torch
from isaaclab.envs import ManagerBasedRLEnv
from isaaclab_tasks.core.locomotion.mdp import progress_reward

from . import body

HEAD_HEIGHT = 1.4
"""Height of the head at which the Control Suite calls the humanoid standing [m]."""

RUN_SPEED = 10.0
"""Speed at which its run task is perfect [m/s]."""


class Progress(progress_reward):
    """Speed towards the target, over one policy step, up to a cap."""

    def __call__(
        self, env: ManagerBasedRLEnv, target_pos: tuple[float, float, float], speed_cap: float | None
    ) -> torch.Tensor:
        """Return the speed [m/s].

        Args:
            env: The environment.
            target_pos: The target, from the origin of the environment [m].
            speed_cap: Largest speed that counts [m/s]; None: none.
        """
        speed = super().__call__(env, target_pos)
        return speed if speed_cap is None else speed.clamp(max=speed_cap)


def dmc_score(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the Control Suite's reward of its run task for this step, 0 to 1."""
    short = (HEAD_HEIGHT - body.head_height(env)).clamp(min=0.0)
    # a Gaussian with the value 0.1 a quarter of the height below
    standing = torch.exp(-0.5 * (2.146 * short / (HEAD_HEIGHT / 4.0)).square())
    upright = (1.0 - (0.9 - body.vertical_in_torso(env)[:, 2]) / 1.9).clamp(0.0, 1.0)
    control = (4.0 + (1.0 - env.action_manager.action.square()).clamp(min=0.0).mean(dim=-1)) / 5.0
    speed = body.center_of_mass_velocity(env)[:, :2].norm(dim=-1)
    move = (5.0 * (speed / RUN_SPEED).clamp(max=1.0) + 1.0) / 6.0
    return standing * upright * control * move
