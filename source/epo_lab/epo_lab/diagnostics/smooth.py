"""(a) A linear system with quadratic costs: one smooth hill, where a population should not hurt."""

from __future__ import annotations

import torch

from .base import DiagnosticEnv

DT = 0.1
ACTION_GAIN = 3.0
START_STD = 0.6
COST_POSITION, COST_VELOCITY, COST_ACTION = 1.0, 0.1, 0.3


class SmoothEnv(DiagnosticEnv):
    """Two double integrators are to be brought to the origin; the optimum is the solution of a Riccati equation."""

    num_actions = 2
    horizon = 50

    def __init__(self, num_envs: int, device: str = "cpu", seed: int = 0) -> None:
        """Create the environments and solve the problem."""
        super().__init__(num_envs, device, seed)
        self.gains, cost_to_go = solve()
        start = torch.eye(4, dtype=torch.float64) * START_STD**2
        self._optimal_cost = float(torch.trace(cost_to_go @ start))
        self._idle_cost = float(torch.trace(idle_cost() @ start))

    def draw_state(self) -> dict[str, torch.Tensor]:
        """Return positions and velocities around the origin."""
        return {"x": START_STD * self.normal(self.num_envs, 4)}

    def observe(self) -> torch.Tensor:
        """Return position, velocity and time."""
        return torch.cat([self.state["x"], self.time], dim=-1)

    def advance(self, actions: torch.Tensor) -> torch.Tensor:
        """Integrate one step; the reward is the negative cost."""
        position, velocity = self.state["x"].split(2, dim=-1)
        cost = (COST_POSITION * position.square() + COST_VELOCITY * velocity.square()).sum(dim=-1)
        cost = cost + COST_ACTION * actions.square().sum(dim=-1)
        velocity_next = velocity + DT * ACTION_GAIN * actions
        self.state["x"] = torch.cat([position + DT * velocity, velocity_next], dim=-1)
        return -DT * cost

    def score(self, returns: torch.Tensor) -> torch.Tensor:
        """Return 0 for doing nothing and 1 for the optimal controller, on average over the starts."""
        return (self._idle_cost + returns) / (self._idle_cost - self._optimal_cost)


def _system() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    eye, zero = torch.eye(2, dtype=torch.float64), torch.zeros(2, 2, dtype=torch.float64)
    a = torch.cat([torch.cat([eye, DT * eye], 1), torch.cat([zero, eye], 1)])
    b = torch.cat([zero, DT * ACTION_GAIN * eye])
    q = DT * torch.diag(torch.tensor([COST_POSITION] * 2 + [COST_VELOCITY] * 2, dtype=torch.float64))
    r = DT * COST_ACTION * eye
    return a, b, q, r


def solve() -> tuple[list[torch.Tensor], torch.Tensor]:
    """Return the optimal feedback gains of every step (u = -K x) and the cost of the whole episode (x' P x)."""
    a, b, q, r = _system()
    p, gains = torch.zeros(4, 4, dtype=torch.float64), []
    for _ in range(SmoothEnv.horizon):
        gain = torch.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)
        p = q + a.T @ p @ (a - b @ gain)
        gains.append(gain)
    return gains[::-1], p


def idle_cost() -> torch.Tensor:
    """Return the cost of doing nothing, as the matrix of a quadratic form."""
    a, _, q, _ = _system()
    p = torch.zeros(4, 4, dtype=torch.float64)
    for _ in range(SmoothEnv.horizon):
        p = q + a.T @ p @ a
    return p
