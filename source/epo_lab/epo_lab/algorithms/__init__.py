"""Algorithms, by the class paths that rsl_rl's runner takes."""

from .off_policy.sac import SAC
from .off_policy.td3 import TD3
from .on_policy.epo import EPO
from .pbt import PBT

__all__ = ["EPO", "PBT", "SAC", "TD3"]
