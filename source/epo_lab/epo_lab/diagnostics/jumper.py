"""(h) A runner jumps gaps that grow with its level: what it earns is speed, what it is judged by is the level."""

from __future__ import annotations

import torch

from .base import DiagnosticEnv

DT = 0.1
"""Length of a step [s]."""
GRAVITY = 9.81
TOP_SPEED = 2.5
"""Fastest run [m/s]."""
ACCELERATION = 1.5
"""Change of the speed at full action [m/s^2]: one run-up is too short for top speed, and a fall costs all of it."""
TAKE_OFF = 2.5
"""Upward speed of a jump at full action [m/s]."""
RUN_UP = (0.5, 1.0)
"""Distance from where a run begins or a jump ended to the edge of the next gap [m]; uniform."""
GROWTH = 0.125
"""How much wider a gap is than that of the level below [m]; that of level 0 is as wide."""
FALL_COST = 2.0
"""Reward that a fall costs; a step at top speed pays 1."""

LONGEST_JUMP = TOP_SPEED * 2.0 * TAKE_OFF / GRAVITY
"""How far the best jump goes [m]: speed times twice the time that gravity takes to stop the rise."""
TOP_LEVEL = int((LONGEST_JUMP - TOP_SPEED * DT) / GROWTH)
"""The widest gap that can be jumped wherever the last step before its edge ends, in multiples of the growth."""


class JumperEnv(DiagnosticEnv):
    """A level up for a gap that was crossed, a level down for a fall before its middle, as on a parkour.

    Every episode begins on level 0. The reward is the speed and knows nothing of levels: slow hops over small gaps earn
    as much as one long jump, until they have led to gaps that only a fast, high and late jump crosses.
    """

    num_actions = 2
    horizon = 80

    def draw_state(self) -> dict[str, torch.Tensor]:
        """Return runners at rest before their first gap."""
        zero = torch.zeros(self.num_envs, device=self.device)
        return {
            "edge": self.draw_run_up(),
            "speed": zero,
            "height": zero,
            "rise": zero,
            "landing": zero,
            "flying": torch.zeros_like(zero, dtype=torch.bool),
            "level": torch.zeros_like(zero, dtype=torch.long),
        }

    def draw_run_up(self) -> torch.Tensor:
        """Return distances to a next gap."""
        near, far = RUN_UP
        return near + (far - near) * self.uniform(self.num_envs)

    @property
    def width(self) -> torch.Tensor:
        """Width of the next gap [m]; on the top level it stays that of the level below. Shape is (num_envs,)."""
        return GROWTH * (self.state["level"] + 1).clamp(max=TOP_LEVEL)

    def observe(self) -> torch.Tensor:
        """Return the way to the edge and the gap's width, speed, height and rise, whether it flies, level and time."""
        state = self.state
        numbers = [
            state["edge"],
            self.width,
            state["speed"] / TOP_SPEED,
            state["height"],
            state["rise"] / TAKE_OFF,
            state["flying"].float(),
            state["level"] / TOP_LEVEL,
        ]
        return torch.cat([torch.stack(numbers, dim=-1), self.time], dim=-1)

    def advance(self, actions: torch.Tensor) -> torch.Tensor:
        """Run, jump, fly, land or fall."""
        state, width = self.state, self.width
        drive, jump = actions.unbind(dim=-1)
        on_ground = ~state["flying"]

        # Run: the speed changes on the ground only
        faster = (state["speed"] + DT * ACCELERATION * drive).clamp(0.0, TOP_SPEED)
        speed = torch.where(on_ground, faster, state["speed"])

        # Take-off: ballistics tell where the jump will end
        leaps = on_ground & (jump > 0.0)
        rise = torch.where(leaps, TAKE_OFF * jump, state["rise"])
        landing = torch.where(leaps, state["edge"] - speed * 2.0 * rise / GRAVITY, state["landing"])

        # Flight: exact for a constant acceleration
        flying = leaps | state["flying"]
        height = torch.where(flying, state["height"] + DT * rise - 0.5 * GRAVITY * DT**2, 0.0)
        rise = torch.where(flying, rise - GRAVITY * DT, 0.0)
        lands = flying & (height <= 0.0)
        edge = torch.where(lands, landing, state["edge"] - DT * speed)

        # Landing: behind the gap, before it or in it, where those who run on end too
        down = lands | ~flying
        crossed = lands & (edge <= -width)
        fallen = down & (edge < 0.0) & ~crossed
        early = fallen & (~lands | (edge > -0.5 * width))
        self.state = {
            "edge": torch.where(crossed | fallen, self.draw_run_up(), edge),
            "speed": torch.where(fallen, 0.0, speed),
            "height": torch.where(down, 0.0, height),
            "rise": torch.where(down, 0.0, rise),
            "landing": torch.where(down, 0.0, landing),
            "flying": flying & ~lands,
            "level": (state["level"] + crossed.long() - early.long()).clamp(0, TOP_LEVEL),
        }
        return torch.where(fallen, -FALL_COST, speed / TOP_SPEED)

    def score(self, returns: torch.Tensor) -> torch.Tensor:
        """Return the level, as a share of the highest."""
        return self.state["level"] / TOP_LEVEL
