"""Algorithms, by the class paths that rsl_rl's runner takes."""

from .on_policy.epo import EPO
from .pbt import PBT

__all__ = ["EPO", "PBT"]
