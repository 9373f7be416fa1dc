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

RUN_SPEED, WALK_SPEED = 10.0, 1.0
"""Speeds at which its run and walk tasks are perfect [m/s]."""

STAND_SPEED_MARGIN = 2.0
"""Speed at which its stand task pays a tenth [m/s]."""


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


def dmc_reward(env: ManagerBasedRLEnv, speed: float) -> torch.Tensor:
    """Return the Control Suite's reward of this step, 0 to 1.

    Args:
        env: The environment.
        speed: Horizontal speed from which moving is perfect [m/s]; 0 asks to stay in place.
    """
    # Standing: a Gaussian with the value 0.1 a quarter of the height below
    short = (HEAD_HEIGHT - body.head_height(env)).clamp(min=0.0)
    standing = _gaussian(short / (HEAD_HEIGHT / 4.0))
    upright = (1.0 - (0.9 - body.vertical_in_torso(env)[:, 2]) / 1.9).clamp(0.0, 1.0)

    # Small control: between 0.8 at full torque and 1
    control = (4.0 + (1.0 - env.action_manager.action.square()).clamp(min=0.0).mean(dim=-1)) / 5.0

    velocity = body.center_of_mass_velocity(env)[:, :2]
    if speed > 0.0:
        move = (5.0 * (velocity.norm(dim=-1) / speed).clamp(max=1.0) + 1.0) / 6.0
    else:
        move = _gaussian(velocity / STAND_SPEED_MARGIN).mean(dim=-1)
    return standing * upright * control * move


def dmc_score(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Return the Control Suite's reward of its run task for this step, 0 to 1."""
    return dmc_reward(env, RUN_SPEED)


def _gaussian(distance: torch.Tensor) -> torch.Tensor:
    """Return 1 at 0 and 0.1 at 1."""
    return torch.pow(0.1, distance.square())
