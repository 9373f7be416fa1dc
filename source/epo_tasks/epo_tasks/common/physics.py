"""The physics engines a task can run on, chosen with ``physics=ovphysx | newton_mjwarp | isaacsim_physx``.

PhysX without Kit (``ovphysx``) is the default: the reference scores come from PhysX, it needs no Isaac Sim, and on a
CPU it is several times faster than Newton (``docs/physics.md`` has the figures and the command).
"""

from __future__ import annotations

from isaaclab_newton.physics import MJWarpSolverCfg, NewtonCfg, NewtonShapeCfg
from isaaclab_ov.physics import OvPhysxCfg
from isaaclab_physx.physics import PhysxCfg
from isaaclab_tasks.utils import PresetCfg, preset

MANY_CONTACTS = {"gpu_max_rigid_patch_count": 20 * 2**15, "gpu_found_lost_pairs_capacity": 2**26}
"""PhysX's buffers on a GPU for hands that hold objects, the sizes of Isaac Lab's own lifting tasks: what does not fit
into a buffer is dropped, and the default's patches are seven for each of 24,576 environments. CPUs do not use them."""


def physics_presets(newton: NewtonCfg, *, bounce_threshold: float, **gpu_buffers: int) -> PresetCfg:
    """Return the engines of a task.

    Args:
        newton: Newton's settings for this kind of task.
        bounce_threshold: Relative speed below which a contact does not bounce [m/s]; only Isaac Sim's PhysX offers it.
        gpu_buffers: Sizes of PhysX's buffers on a GPU.
    """
    ovphysx = OvPhysxCfg(**gpu_buffers)
    return preset(
        default=ovphysx,
        ovphysx=ovphysx,
        newton_mjwarp=newton,
        isaacsim_physx=PhysxCfg(bounce_threshold_velocity=bounce_threshold, **gpu_buffers),
    )


def _legged_newton(num_substeps: int) -> NewtonCfg:
    return NewtonCfg(
        solver_cfg=MJWarpSolverCfg(
            integrator="implicitfast",
            # the pyramidal cone lets standing feet creep apart; an elliptic one with stiff friction holds them
            cone="elliptic",
            impratio=100.0,
            # MuJoCo's own contacts know no triangle mesh that is not convex: robots fall through terrain
            use_mujoco_contacts=False,
            njmax=300,
            nconmax=80,
        ),
        num_substeps=num_substeps,
        default_shape_cfg=NewtonShapeCfg(ke=160000.0, kd=1100.0),
    )


LEGGED_NEWTON = _legged_newton(num_substeps=1)
"""Walking robots on planes and on terrain meshes, for physics steps of 5 ms."""

LEGGED_NEWTON_10MS = _legged_newton(num_substeps=2)
"""The same for steps of 10 ms: in undivided ones a robot trained on PhysX stumbles (``docs/evaluating.md``)."""


def _hand_newton(num_substeps: int, contacts: NewtonShapeCfg) -> NewtonCfg:
    return NewtonCfg(
        solver_cfg=MJWarpSolverCfg(
            integrator="implicitfast",
            cone="pyramidal",
            impratio=10.0,
            iterations=20,
            # at 20 the line search does not end when fingers are pressed on a cube, or arms thrown about
            ls_iterations=50,
            # MuJoCo's box-box contacts (up to eight a pair) overflow and blow up when fingers cross
            use_mujoco_contacts=False,
            njmax=500,
            nconmax=120,
        ),
        num_substeps=num_substeps,
        default_shape_cfg=contacts,
    )


HAND_NEWTON = _hand_newton(num_substeps=2, contacts=NewtonShapeCfg(gap=0.0, ke=1.0e4, kd=200.0))
"""Hands that hold small objects. Contacts give way with a time constant of 2 / kd = 10 ms, over twice a substep."""

# An arm throws an object at the table with 5 m/s and more: at 10 ms it goes centimetres deep. 5 ms is a little over
# two of the shorter substeps, the shortest that MuJoCo resolves.
ARM_HAND_NEWTON = _hand_newton(num_substeps=4, contacts=NewtonShapeCfg(gap=0.0, ke=4.0e4, kd=400.0))
"""Arms with hands. In a short run of random actions joints reached 240 rad/s with two substeps, 40 with four."""

GRIPPER_NEWTON = _hand_newton(num_substeps=2, contacts=NewtonShapeCfg(gap=0.0, ke=4.0e4, kd=400.0))
"""An arm with a two-finger gripper, which throws nothing: with four substeps it holds cubes as well as with two."""
