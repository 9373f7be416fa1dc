"""(g) A key, a door and a target behind a wall: the pay leads to the wall, the way leads away from it."""

from __future__ import annotations

import math

import torch

from .base import DiagnosticEnv

SPEED = 0.2
"""Distance of a step at full action."""
ROOM = 1.5
"""Half the width of the square room; a wall on x = 0 divides it."""
START = (-0.6, -0.2)
"""Middle of the square in which episodes begin."""
START_SPREAD = 0.2
"""Half the width of that square."""
KEY, KEY_RADIUS = (-0.8, -0.8), 0.3
"""Where the key is, and how close one must pass to have it."""
DOOR = (-1.3, -0.3)
"""From where to where the wall is open on y, for who has the key."""
TARGET, TARGET_RADIUS = (0.6, 0.9), 0.3
"""Where the target is, and how close is there."""
PAY_REACH = 1.5
"""Distance from the target within which something is paid, on both sides of the wall."""
PAY_NEAR = 0.1
"""Reward of a step next to the target; it falls to zero with the distance, the wall does not matter."""
PAY_KEY = 1.0
"""Reward for the key."""
WALL = 1e-3
"""How far from the wall it stops those who walk into it."""


class KeyDoorEnv(DiagnosticEnv):
    """A point on a plane is paid 1 for every step in the target, and a little for being near, even behind the wall.

    The score is the number of steps in the target, as a share of what the shortest way leaves of the episode.
    """

    num_actions = 2
    horizon = 64

    def __init__(self, num_envs: int, device: str = "cpu", seed: int = 0) -> None:
        """Create the environments and measure the ways from the key to the target."""
        self.key, self.target = torch.tensor(KEY, device=device), torch.tensor(TARGET, device=device)
        self.start = torch.tensor(START, device=device)
        self.touches, self.rest = ways_from_the_key(device)
        super().__init__(num_envs, device, seed)

    def draw_state(self) -> dict[str, torch.Tensor]:
        """Return positions around the start, without the key."""
        position = self.start + START_SPREAD * (2.0 * self.uniform(self.num_envs, 2) - 1.0)
        zero = torch.zeros(self.num_envs, device=self.device)
        return {"position": position, "key": zero.bool(), "stay": zero, "best_stay": self.best_stay(position)}

    def best_stay(self, position: torch.Tensor) -> torch.Tensor:
        """Return how many steps of an episode that begins here can be in the target, by the shortest way."""
        way = (torch.cdist(position, self.touches) + self.rest).amin(dim=-1)
        # Note: the points of the circle are a degree apart, so that a way can be too long by less than 1e-4
        return self.horizon - torch.ceil((way - 1e-4) / SPEED) + 1.0

    def observe(self) -> torch.Tensor:
        """Return position, whether it has the key, and time."""
        return torch.cat([self.state["position"], self.state["key"].float().unsqueeze(-1), self.time], dim=-1)

    def advance(self, actions: torch.Tensor) -> torch.Tensor:
        """Walk, take the key, pay."""
        state = self.state
        begin = state["position"]
        end = self.walk(begin, actions, state["key"])

        # The key: whether the way of this step passes it
        way = end - begin
        share = ((self.key - begin) * way).sum(dim=-1) / way.square().sum(dim=-1).clamp(min=1e-12)
        nearest = begin + share.clamp(0.0, 1.0).unsqueeze(-1) * way
        has_key = state["key"] | ((nearest - self.key).norm(dim=-1) <= KEY_RADIUS)

        # Pay: for the target, for being near it, and once for the key
        distance = (end - self.target).norm(dim=-1)
        there = distance <= TARGET_RADIUS
        near = PAY_NEAR * (1.0 - distance / PAY_REACH).clamp(min=0.0)
        found = has_key & ~state["key"]
        self.state = {**state, "position": end, "key": has_key, "stay": state["stay"] + there}
        return torch.where(there, 1.0, near) + PAY_KEY * found

    @staticmethod
    def walk(begin: torch.Tensor, actions: torch.Tensor, has_key: torch.Tensor) -> torch.Tensor:
        """Return where a step ends: at most :data:`SPEED` away, on this side of the wall if not through the door."""
        step = SPEED * actions / actions.norm(dim=-1, keepdim=True).clamp(min=1.0)
        end = (begin + step).clamp(-ROOM, ROOM)
        left = begin[:, 0] < 0.0
        crosses = left != (end[:, 0] < 0.0)

        # Where the way meets the wall
        share = begin[:, 0] / torch.where(crosses, begin[:, 0] - end[:, 0], 1.0)
        height = begin[:, 1] + share * (end[:, 1] - begin[:, 1])
        stopped = crosses & ~(has_key & (height >= DOOR[0]) & (height <= DOOR[1]))
        x = torch.where(stopped, torch.where(left, -WALL, WALL), end[:, 0])
        return torch.stack([x, end[:, 1]], dim=-1)

    def score(self, returns: torch.Tensor) -> torch.Tensor:
        """Return the share of the steps that could be spent in the target."""
        return self.state["stay"] / self.state["best_stay"]


def ways_from_the_key(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return where the key can be touched, and how long the way is from there round the door's post into the target.

    The points are on the third of the circle that faces start and door, a degree apart. The post is the end of the
    door that is nearer to the target: a straight line to the target would meet the wall above it.
    """
    angles = torch.deg2rad(torch.arange(0.0, 121.0))
    touches = torch.tensor(KEY) + KEY_RADIUS * torch.stack([angles.cos(), angles.sin()], dim=-1)
    post = torch.tensor((0.0, DOOR[1]))
    rest = (touches - post).norm(dim=-1) + math.dist((0.0, DOOR[1]), TARGET) - TARGET_RADIUS
    return touches.to(device), rest.to(device)
