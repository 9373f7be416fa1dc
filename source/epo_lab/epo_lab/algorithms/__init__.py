"""How agents learn: PPO for each of them, and a master that also learns from the others' data."""

from .epo import EPO
from .pbt import PBT

__all__ = ["EPO", "PBT"]
