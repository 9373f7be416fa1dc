"""A trot without learning: it shows that robots can walk over the field in the physics."""

from __future__ import annotations

import math
from typing import Any

import torch

from epo_tasks.parkour.env_cfg import ACTION_SCALE
from epo_tasks.parkour.mdp.observations import roll_pitch

OVERRIDES = (
    "env.events.trunk_com=null",
    "env.events.motor_strength.params.strength_range=[1.0,1.0]",
    "env.events.trunk_mass.params.mass_distribution_params=[0.0,0.0]",
    "env.events.push.params.speed=0.0",
)
"""Robots without the randomisation that a fixed gait cannot know of."""

LINK = 0.2
"""Length of thigh and calf [m]."""

HIP = (0.18, 0.13)
"""Where feet hang below the trunk, ahead and aside of its middle [m]."""

SHIFTS = (0.0, 0.04, -0.04, 0.08, -0.08, 0.12, -0.12, 0.16, -0.16, 0.2, -0.2)
"""Where else a foot may be set down if there is a hole, ahead of where it would be [m], best first."""


class ScriptedTrot:
    """Moves diagonal legs in turn, steers towards the current goal and does not step into holes that it can see."""

    def __init__(
        self, env: Any, speed: float = 1.1, frequency: float = 3.3, lift: float = 0.12, height: float = 0.28
    ) -> None:
        """Create the controller.

        Args:
            env: The environment.
            speed: Speed at which feet on the ground are drawn back [m/s]; the robot is slower.
            frequency: Steps of a leg a second.
            lift: How high feet are raised [m].
            height: Height of the hips above the feet [m].
        """
        self._env = env
        self._robot = env.scene["robot"]
        self._goals = env.command_manager.get_term("goals")
        self._speed, self._frequency, self._lift, self._height = speed, frequency, lift, height
        legs = [name.split("_")[0] for name in self._robot.joint_names[::3]]
        self._phases = torch.tensor([0.0 if leg in ("FL", "RR") else 0.5 for leg in legs])
        self._sides = torch.tensor([1.0 if leg[1] == "L" else -1.0 for leg in legs])
        ahead = torch.tensor([1.0 if leg[0] == "F" else -1.0 for leg in legs])
        self._hips = torch.stack([HIP[0] * ahead, HIP[1] * self._sides], dim=-1)
        # with feet right below its hips the robot drifts backwards
        self._middles = torch.where(ahead > 0, -0.075, -0.105)
        self._default = self._robot.data.default_joint_pos.torch
        self._shifts = torch.zeros(env.num_envs, 4)
        self._step = 0

    def act(self) -> torch.Tensor:
        """Return the next action."""
        seconds = self._step * self._env.step_dt
        self._step += 1
        # stand for half a second, then begin softly
        strength = min(max(2.0 * (seconds - 0.5), 0.0), 1.0)
        phase = (self._frequency * seconds + self._phases) % 1.0
        swing = phase >= 0.5
        share = torch.where(swing, 2.0 * phase - 1.0, 2.0 * phase)
        turn = (1.5 * self._goals.heading_error).clamp(-0.6, 0.6).unsqueeze(-1)
        stride = 0.5 * self._speed * strength * (1.0 - turn * self._sides) / self._frequency
        self._look(self._middles + 0.5 * stride, share, swing)
        velocity = self._robot.data.root_lin_vel_b.torch
        roll, pitch = roll_pitch(self._env).unbind(dim=-1)
        # a foot is set down farther in the direction in which the robot is too fast
        x = self._middles + self._shifts + stride * torch.where(swing, share - 0.5, 0.5 - share)
        x = x + torch.where(swing, share, 1.0) * 0.06 * (velocity[:, :1] - 0.5 * strength)
        aside = 0.16 * velocity[:, 1:2] * torch.where(swing, share, 1.0 - share)
        # legs on the side that hangs are stretched
        level = self._hips[:, 0] * pitch.unsqueeze(-1) - self._hips[:, 1] * roll.unsqueeze(-1)
        lift = strength * self._lift * torch.where(swing, torch.sin(math.pi * share), 0.0)
        down = self._height - lift + torch.where(swing, 0.0, 0.8 * level)
        reach = (x.square() + down.square()).sqrt().clamp(max=1.98 * LINK)
        calf = -2.0 * torch.acos(reach / (2.0 * LINK))
        thigh = torch.atan2(-x, down) - 0.5 * calf
        target = torch.stack([self._default[:, ::3] + torch.atan2(aside, down), thigh, calf], dim=-1).flatten(1)
        return (target - self._default) / ACTION_SCALE

    def _look(self, landing: torch.Tensor, share: torch.Tensor, swing: torch.Tensor) -> None:
        """Choose where swinging feet come down: the first place without a hole within 5 cm before and behind it."""
        data = self._robot.data
        heading = data.heading_w.torch
        forward = torch.stack([heading.cos(), heading.sin()], dim=-1)[:, None]
        left = torch.stack([-heading.sin(), heading.cos()], dim=-1)[:, None]
        left_to_go = ((1.0 - share) * 0.5 / self._frequency).unsqueeze(-1)
        hips = data.root_link_pos_w.torch[:, None, :2] + left_to_go * data.root_lin_vel_w.torch[:, None, :2]
        hips = hips + self._hips[:, :1] * forward + self._hips[:, 1:] * left
        shifts = torch.tensor(SHIFTS)
        around = landing[..., None, None] + shifts[:, None] + torch.tensor([-0.05, 0.0, 0.05])
        points = hips[:, :, None, None] + around.unsqueeze(-1) * forward[:, :, None, None]
        firm = (self._goals.terrain.height_field.surface(points) > -0.12).all(dim=-1)
        chosen = shifts[firm.float().argmax(dim=-1)]
        self._shifts = torch.where(swing & (share < 0.8), chosen, self._shifts)
