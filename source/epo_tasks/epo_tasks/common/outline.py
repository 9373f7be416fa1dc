"""Lines that show a box in a picture."""

import torch
from isaaclab.utils.math import quat_apply

_CORNERS = [[float(i >> axis & 1) - 0.5 for axis in range(3)] for i in range(8)]
_EDGES = [(a, b) for a in range(8) for b in range(a) if bin(a ^ b).count("1") == 1]


def box_outline(position: torch.Tensor, quat: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    """Return the twelve edges of a box as line segments. Shape is (num_envs, 12, 2, 3).

    Args:
        position: Centres [m]. Shape is (num_envs, 3).
        quat: Orientations (x, y, z, w). Shape is (num_envs, 4).
        edges: Lengths of the edges [m]. Shape is (num_envs, 3).
    """
    corners = torch.tensor(_CORNERS, device=position.device) * edges.unsqueeze(1)
    corners = quat_apply(quat.unsqueeze(1).expand(-1, 8, -1), corners) + position.unsqueeze(1)
    return corners[:, _EDGES]
