"""Algorithms, by the class paths that rsl_rl's runner takes."""

from .off_policy.cem_rl import CemRl
from .off_policy.es import ES
from .off_policy.esac import ESAC
from .off_policy.sac import SAC
from .off_policy.td3 import TD3
from .on_policy.epo import EPO
from .pbt import PBT

__all__ = ["EPO", "ES", "ESAC", "CemRl", "PBT", "SAC", "TD3"]
