"""Controllers without learning for the Franka cube tasks: they show that both can be done in the physics."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from isaaclab.utils.math import axis_angle_from_quat, euler_xyz_from_quat, quat_conjugate, quat_mul

CLEARANCE = 0.10
"""Height above a cube at which the hand comes to it and goes [m]."""

GAIN = 3.0
"""Action per displacement, in units of the action's own scale. The weight of a held cube pulls the hand down by
m g / (150 GAIN L), 2 mm with L near 1.5 kg."""

LIFT = 0.20
"""Height above the table to which the plan ``lift`` brings a cube's centre [m]."""


@dataclass(frozen=True)
class Sight:
    """What a controller sees: positions in the environment's frame [m]. Shapes are (num_envs, 3)."""

    grip: torch.Tensor
    cube: torch.Tensor
    goal: torch.Tensor
    table_top: float

    @property
    def held(self) -> torch.Tensor:
        """Where the grip site is, from the cube."""
        return self.grip - self.cube


@dataclass(frozen=True)
class Phase:
    """Bring the grip site somewhere with open or closed fingers."""

    target: Callable[[Sight], torch.Tensor]
    closed: bool
    tolerance: float = math.inf
    """Distance at which the phase may end [m]. Default: any."""
    steps: int = 1
    """Steps that it lasts at least."""


def up(vector: torch.Tensor, height: float) -> torch.Tensor:
    """Return points that are so much higher [m]."""
    return vector + vector.new_tensor([0.0, 0.0, height])


def at_height(vector: torch.Tensor, height: float) -> torch.Tensor:
    """Return points at this height [m]."""
    return torch.cat([vector[:, :2], torch.full_like(vector[:, 2:], height)], dim=1)


GRASP = (
    Phase(lambda see: up(see.cube, CLEARANCE), closed=False, tolerance=0.008),
    Phase(lambda see: see.cube, closed=False, tolerance=0.006),
    Phase(lambda see: see.cube, closed=True, steps=15),
)

PLACE = (
    Phase(lambda see: at_height(see.grip, see.table_top + 0.20), closed=True, tolerance=0.02),
    Phase(lambda see: at_height(see.goal + see.held, see.table_top + 0.20), closed=True, tolerance=0.006),
    Phase(lambda see: up(see.goal + see.held, 0.0605), closed=True, tolerance=0.012, steps=20),
)

FOREVER = 1_000_000

PLANS = {
    "lift": (*GRASP, Phase(lambda see: at_height(see.cube, see.table_top + LIFT), closed=True, steps=FOREVER)),
    "hold": (*GRASP, *PLACE[:2], Phase(lambda see: up(see.goal + see.held, 0.0605), closed=True, steps=FOREVER)),
    "stack": (
        *GRASP,
        *PLACE,
        # open the fingers before they leave
        Phase(lambda see: see.grip, closed=False, steps=12),
        Phase(lambda see: up(see.goal, 0.06 + CLEARANCE), closed=False, steps=FOREVER),
    ),
    # just above the table; lifting ends the episode
    "push": (*GRASP, Phase(lambda see: up(see.goal + see.held, 0.004), closed=True, steps=FOREVER)),
}
"""What the hand does, one phase after the other."""


class ScriptedHand:
    """Follows a plan in every environment of a Franka cube task; begins anew with every episode."""

    def __init__(self, env: Any, plan: str) -> None:
        """Take up a plan.

        Args:
            env: The environment.
            plan: One of :data:`PLANS`.
        """
        self._env = env
        self._goal = env.command_manager.get_term("goal")
        self._phases = PLANS[plan]
        self._phase = torch.zeros(env.num_envs, dtype=torch.long, device=env.device)
        self._timer = torch.zeros_like(self._phase)
        self._yaw = torch.zeros(env.num_envs, device=env.device)
        self._closed = torch.tensor([phase.closed for phase in self._phases], device=env.device)
        self._tolerance = torch.tensor([phase.tolerance for phase in self._phases], device=env.device)
        self._least = torch.tensor([phase.steps for phase in self._phases], device=env.device)

    @property
    def phase(self) -> torch.Tensor:
        """Number of the running phase. Shape is (num_envs,)."""
        return self._phase

    def act(self) -> torch.Tensor:
        """Return the next action."""
        fresh = self._env.episode_length_buf == 0
        self._phase = torch.where(fresh, 0, self._phase)
        self._timer = torch.where(fresh, 0, self._timer)

        goal, actions = self._goal, self._env.action_manager.get_term("arm").cfg
        grip, quat = goal.hand.pose()
        see = Sight(grip, goal.cube_pos, goal.goal_pos, goal.cfg.table_top)
        targets = torch.stack([phase.target(see) for phase in self._phases], dim=1)
        error = targets[torch.arange(len(grip), device=grip.device), self._phase] - grip

        # Fingers point down and lie along two faces of the cube
        yaw = euler_xyz_from_quat(goal.cube.data.root_link_quat_w.torch)[2]
        yaw = torch.remainder(yaw + math.pi / 4.0, math.pi / 2.0) - math.pi / 4.0
        # as it was at first: a held cube turns with the hand, which would follow it round and round
        self._yaw = yaw = torch.where(fresh, yaw, self._yaw)
        zero = torch.zeros_like(yaw)
        # the product of a turn by yaw about z and half a turn about x
        wanted = torch.stack([(yaw / 2.0).cos(), (yaw / 2.0).sin(), zero, zero], dim=-1)
        difference = quat_mul(wanted, quat_conjugate(quat))
        turn = axis_angle_from_quat(torch.where(difference[:, 3:] < 0.0, -difference, difference))

        self._timer += 1
        done = (error.norm(dim=-1) < self._tolerance[self._phase]) & (self._timer >= self._least[self._phase])
        grasp = torch.where(self._closed[self._phase], -1.0, 1.0).unsqueeze(-1)
        self._timer = torch.where(done, 0, self._timer)
        self._phase = (self._phase + done).clamp(max=len(self._phases) - 1)
        action = torch.cat([GAIN * error / actions.position_scale, turn / actions.rotation_scale, grasp], dim=-1)
        return action.clamp(-1.0, 1.0)
