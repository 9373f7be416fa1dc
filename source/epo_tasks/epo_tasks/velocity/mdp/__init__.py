"""Terms of the velocity tasks that Isaac Lab does not have."""

from .events import reset_joints_around_default

__all__ = ["reset_joints_around_default"]
