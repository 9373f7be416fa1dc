"""The whole state of a task of Isaac Lab, so that its episodes can go on in another process.

- Poses, velocities and joints come back through the assets' own writers.
- Joint gains, limits, friction, armature, masses and gravity, which events may change, through the writers of assets
  and engine, where they differ.
- Everything that is kept in tensors and numbers (commands, curricula, clocks, histories, delays, targets, sensors,
  caches) in place, found by a walk along the objects of the environment.
- Of Newton also its own state, controls and motors, and the warm start of its solver, in place.

PhysX drops what it remembers of contacts when bodies are placed, and there is no way to read it. So the state is also
written back where it is saved (:func:`save_physics`): the run that goes on and the one that is resumed both go on from
the same written state, and do the same. No import of Isaac Lab: what is asked for is asked of the objects.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from .walk import Walk, as_tensor, homeless, read, write

CLOSED = {"sim", "markers", "ui", "visualizers", "scene_data", "cloner", "renderers", "physics", "devices", "app"}
"""Subpackages of Isaac Lab whose objects are handles and pictures, not state."""

PARAMETERS = {
    "joint_stiffness": ("write_joint_stiffness_to_sim_index", "stiffness"),
    "joint_damping": ("write_joint_damping_to_sim_index", "damping"),
    "joint_armature": ("write_joint_armature_to_sim_index", "armature"),
    "joint_pos_limits": ("write_joint_position_limit_to_sim_index", "limits"),
    "joint_vel_limits": ("write_joint_velocity_limit_to_sim_index", "limits"),
    "joint_effort_limits": ("write_joint_effort_limit_to_sim_index", "limits"),
    "joint_friction_coeff": ("write_joint_friction_coefficient_to_sim_index", "joint_friction_coeff"),
    "body_mass": ("set_masses_index", "masses"),
    "body_com_pose_b": ("set_coms_index", "coms"),
    "body_inertia": ("set_inertias_index", "inertias"),
}
"""What events may change of an asset: the attribute of its data, and who writes it under which name."""

SOLVER = ("qacc_warmstart", "qfrc_applied", "xfrc_applied", "ctrl", "act")
"""What MuJoCo Warp's solver carries from step to step beside positions and velocities."""


GRAVITY = "gravity"
"""Name of the gravity of all worlds among what Newton keeps."""


def is_simulated(env: Any) -> bool:
    """Return whether an environment is a simulated one, of Isaac Lab."""
    return hasattr(env, "scene") and hasattr(env, "sim")


def save_physics(env: Any) -> dict[str, Any]:
    """Return the state of all environments, and go on from it as those do that restore it."""
    state = physics_state(env)
    with torch.inference_mode():
        _apply(env, state)
    return state


def physics_state(env: Any) -> dict[str, Any]:
    """Return the state of all environments, in the memory of the host; nothing is changed."""
    walk = _walk(env)
    return {
        "num_envs": env.num_envs,
        "engine": _engine(env),
        "scene": _to_host(env.scene.get_state()),
        "parameters": {name: _to_host(_parameters(asset)) for name, asset in _assets(env).items()},
        "gravity": _gravity(env),
        "solver": {name: tensor.to("cpu", copy=True) for name, tensor in _solver(env).items()},
        "leaves": read(walk),
    }


def misfit(env: Any, state: dict[str, Any]) -> str:
    """Return why a state is not one of these environments; nothing if it is."""
    if state["num_envs"] != env.num_envs:
        return f"the simulation was saved with {state['num_envs']} environments, and now there are {env.num_envs}"
    if state["engine"] != _engine(env):
        return f"the simulation was saved with {state['engine']}, and now it is {_engine(env)}"
    return ""


def set_physics_state(env: Any, state: dict[str, Any]) -> str:
    """Restore what :func:`physics_state` returned, and return why that was not possible; nothing if it was.

    Args:
        env: The environment, which has been reset.
        state: The state, which is no :func:`misfit`.
    """
    with torch.inference_mode():
        # Note: some buffers are made when they are first used, all of them in one step
        env.step(torch.zeros(env.num_envs, *env.single_action_space.shape, device=env.device))
        lost = homeless(_walk(env), state["leaves"])
        if lost:
            more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
            return f"this version of the task has no place for {', '.join(lost[:3])}{more}"
        _apply(env, state)
    return ""


def _apply(env: Any, state: dict[str, Any]) -> None:
    """Write a state; the engine comes first, because its writers change caches and targets."""
    _place(env, state["scene"])
    for name, asset in _assets(env).items():
        _set_parameters(asset, state["parameters"].get(name, {}))
    _set_gravity(env, state["gravity"])
    # Note: what was written takes effect, and the solver forgets its last step, before it is told again
    env.sim.forward()
    _set_solver(env, state["solver"])
    write(_walk(env), state["leaves"], env.device)


def _place(env: Any, state: dict[str, Any]) -> None:
    """Put robots and objects where they were, with their velocities.

    Not with the scene's ``reset_to``: it writes targets and forces too, and PhysX adds a force to the one that the next
    step writes.
    """
    for kind, assets in (("articulation", env.scene.articulations), ("rigid_object", env.scene.rigid_objects)):
        for name, asset in assets.items():
            part = {key: value.to(env.device) for key, value in state[kind][name].items()}
            asset.write_root_pose_to_sim_index(root_pose=part["root_pose"])
            asset.write_root_velocity_to_sim_index(root_velocity=part["root_velocity"])
            if kind == "articulation":
                asset.write_joint_position_to_sim_index(position=part["joint_position"])
                asset.write_joint_velocity_to_sim_index(velocity=part["joint_velocity"])


def _walk(env: Any) -> Walk:
    """Return all tensors and numbers of the environment, and of the motors if the engine runs them."""
    packages = {_package(type(env)), _package(type(env.cfg))}

    def enters(value: Any) -> bool:
        parts = type(value).__module__.split(".")
        if parts[0].startswith("isaaclab") and len(parts) > 1 and parts[1] in CLOSED:
            return False
        return any(_package(kind).startswith("isaaclab") or _package(kind) in packages for kind in type(value).__mro__)

    walk = Walk(enters, env.num_envs)
    walk.add("env", env)
    return walk


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def _engine(env: Any) -> str:
    return env.sim.physics_manager.__name__


def _assets(env: Any) -> dict[str, Any]:
    return {**env.scene.articulations, **env.scene.rigid_objects}


def _parameters(asset: Any) -> dict[str, torch.Tensor]:
    return {
        name: getattr(asset.data, name).torch
        for name, (writer, _) in PARAMETERS.items()
        if hasattr(asset, writer) and hasattr(type(asset.data), name)
    }


def _set_parameters(asset: Any, state: dict[str, torch.Tensor]) -> None:
    """Write what differs; each write costs, and most never change."""
    for name, now in _parameters(asset).items():
        if name in state and not torch.equal(now.cpu(), state[name]):
            writer, argument = PARAMETERS[name]
            getattr(asset, writer)(**{argument: state[name].to(now.device)})


def _gravity(env: Any) -> tuple[float, ...] | None:
    """Return the gravity of the scene [m/s^2]; Newton keeps one a world, with its solver's."""
    manager = env.sim.physics_manager
    return tuple(manager.get_gravity()) if hasattr(manager, "get_gravity") else None


def _set_gravity(env: Any, gravity: tuple[float, ...] | None) -> None:
    if gravity is not None and tuple(gravity) != _gravity(env):
        env.sim.physics_manager.set_gravity(tuple(gravity))


def _solver(env: Any) -> dict[str, torch.Tensor]:
    """Return what Newton keeps beside the assets, as tensors that share its memory; nothing of other engines."""
    manager: Any = env.sim.physics_manager
    backend: Any = getattr(manager, "backend", None)
    data = getattr(getattr(manager, "_solver", None), "mjw_data", None)
    if data is None:
        return {}
    walk = Walk(lambda value: _package(type(value)) in ("newton", "isaaclab"), env.num_envs)
    walk.add("state", backend.state_0)
    walk.add("control", backend.control)
    walk.add("motors", getattr(manager, "_adapter", None) or {})
    found = {path: leaf.value for path, leaf in walk.leaves.items() if isinstance(leaf.value, torch.Tensor)}
    kept = {GRAVITY: as_tensor(backend.model.gravity)}
    kept |= {f"solver/{name}": as_tensor(getattr(data, name)) for name in SOLVER}
    return found | {name: tensor for name, tensor in kept.items() if tensor is not None}


def _set_solver(env: Any, state: dict[str, torch.Tensor]) -> None:
    for name, tensor in _solver(env).items():
        differs = name == GRAVITY and not torch.equal(tensor.cpu(), state[name])
        tensor.copy_(state[name])
        if differs:
            # Note: Newton comes with Isaac Lab and only with it
            flags = import_module("newton").ModelFlags
            env.sim.physics_manager.add_model_change(flags.MODEL_PROPERTIES)


def _to_host(values: Any) -> Any:
    if isinstance(values, dict):
        return {name: _to_host(value) for name, value in values.items()}
    return values.detach().to("cpu", copy=True)
