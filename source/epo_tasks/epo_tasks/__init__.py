"""Robots and manager-based Isaac Lab tasks. Importing the package registers the tasks with Gymnasium."""

from .common.compat import allow_pinned_memory_without_cuda, compile_forward_kernels_only
from .registry import register_all

compile_forward_kernels_only()
allow_pinned_memory_without_cuda()
register_all()
