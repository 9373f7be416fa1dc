"""What the engines need to start quickly, and ovphysx to run, and run well, on a machine without CUDA."""

from __future__ import annotations

import os

import warp as wp


def allow_pinned_memory_without_cuda() -> None:
    """Let Warp's CPU device serve pinned allocations from ordinary memory when there is no CUDA driver.

    Isaac Lab's ovphysx assets stage their data in pinned arrays on every device; page-locked memory comes from the
    CUDA driver, so on a CPU-only machine the allocation fails. Pinning only speeds up copies to a GPU.
    """
    wp.init()
    if not wp.is_cuda_available():
        cpu = wp.get_device("cpu")
        cpu.pinned_allocator = cpu.default_allocator


def compile_forward_kernels_only() -> None:
    """Let Warp leave out the derivatives of kernels, which nobody here asks for: it compiles in half the time.

    Must be called before the modules with the kernels are imported. Isaac Lab's demos do the same.
    """
    wp.config.enable_backward = False


def limit_ovphysx_threads(sim) -> None:
    """Give ovphysx one worker a core, or ``OMP_NUM_THREADS`` if that is less; Isaac Lab asks for eight.

    Workers wait for each other in a busy loop, so more of them than free cores cost most of the speed.

    Must be called between the creation of the simulation context and its first reset: the backend that is made here
    is the one that the reset finds, because backends are shared by the value of their config.

    Args:
        sim: The simulation context.
    """
    from isaaclab_ov.physics import OvPhysxCfg
    from isaaclab_ov.physics.ovphysx_manager_cfg import OvPhysxBackendCfg

    physics = sim.cfg.physics
    if not isinstance(physics, OvPhysxCfg) or "cuda" in sim.device:
        return
    from ovphysx.types import ConfigInt32

    cache = physics.cooked_collider_cache_dir
    backend = sim.get_or_create_backend(OvPhysxBackendCfg(device=sim.device, cooked_collider_cache_dir=cache))
    backend.physx.set_config_int32(ConfigInt32.NUM_THREADS, num_threads())


def num_threads() -> int:
    """Return how many threads this process may keep busy."""
    cores = len(os.sched_getaffinity(0))
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return min(cores, int(wanted)) if wanted.isdigit() and int(wanted) > 0 else cores
