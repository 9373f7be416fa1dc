"""Robots and manager-based Isaac Lab tasks. Importing the package registers the tasks with Gymnasium."""

from isaaclab_tasks.utils import import_packages

from .physics.compat import allow_pinned_memory_without_cuda, compile_forward_kernels_only

compile_forward_kernels_only()
allow_pinned_memory_without_cuda()
import_packages(__name__, ["mdp", "agents"])
