"""A task's terms on the virtual device: a scene of random tensors in the place of the engine, which cannot live there.

Names of joints and bodies are the robot's own. Commands, actions, rewards and all else are the task's: they are made
from its config and called in the order of Isaac Lab's step.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch
from isaaclab.assets import ArticulationCfg, BaseArticulation, RigidObjectCfg
from isaaclab.managers import ManagerTermBase, SceneEntityCfg
from isaaclab.sensors import ContactSensorCfg
from isaaclab.terrains import TerrainImporter
from isaaclab_tasks.utils import resolve_task_config

from epo_tasks.parkour.terrain.height_field import HeightField
from epo_tasks.parkour.terrain.tracks import GOALS, TRACKS

from .virtual_device import DEVICE

ENVS = 6


def random(*shape: int) -> torch.Tensor:
    """Return random numbers on the device."""
    return torch.rand(*shape).to(DEVICE)


class Data:
    """Tensors of an asset by the names of Isaac Lab."""

    def __init__(self, joints: int, bodies: int) -> None:
        self._sizes = joints, bodies
        self._made: dict[str, SimpleNamespace] = {}

    def move(self) -> None:
        """Draw anew what moves; limits and defaults stay."""
        for name in [name for name in self._made if "limits" not in name and "default" not in name]:
            self._made[name] = SimpleNamespace(torch=self._draw(name).to(DEVICE))

    def __getattr__(self, name: str) -> SimpleNamespace:
        if name not in self._made:
            self._made[name] = SimpleNamespace(torch=self._draw(name).to(DEVICE))
        return self._made[name]

    def _draw(self, name: str) -> torch.Tensor:
        joints, bodies = self._sizes
        if name.endswith("joint_pos_limits"):
            return torch.tensor([-2.0, 2.0]).expand(ENVS, joints, 2).clone()
        if name == "mass_matrix":
            half = torch.rand(ENVS, joints, joints)
            return half @ half.mT + torch.eye(joints)
        if name == "body_link_jacobian_w":
            return torch.rand(ENVS, bodies - 1, 6, joints)
        ending = next((size for text, size in WIDTHS.items() if re.search(text, name)), ())
        first = (ENVS, joints) if "joint" in name else (ENVS, bodies) if name.startswith("body") else (ENVS,)
        drawn = torch.rand(*first, *ending)
        if ending in ((4,), (7,)):
            drawn[..., -4:] = torch.nn.functional.normalize(drawn[..., -4:], dim=-1)
        return drawn


WIDTHS = {
    "pose": (7,),
    "quat": (4,),
    "(lin|ang)_vel|pos_[wb]$|gravity|forces": (3,),
    "(root|body).*_vel_w": (6,),
}
"""Sizes of what is one for each root or body, by a part of the name; the first that fits counts."""


class Numbers(list):
    """Numbers of joints, on the device too."""

    @property
    def torch(self) -> torch.Tensor:
        """The numbers as a tensor."""
        return torch.tensor(self, dtype=torch.long).to(DEVICE)


class Asset:
    """A robot or an object: random data, and writers that only take what is on the device."""

    def __init__(self, joint_names: list[str], body_names: list[str]) -> None:
        self.joint_names, self.body_names = list(joint_names), list(body_names)
        self.num_joints, self.num_bodies, self.device = len(joint_names), len(body_names), DEVICE
        self.data = Data(self.num_joints, self.num_bodies)
        kinds = ("position", "velocity", "effort")
        command = {kind: SimpleNamespace(torch=random(ENVS, self.num_joints)) for kind in kinds}
        effort = SimpleNamespace(torch=random(ENVS, self.num_joints))
        self.actuators = SimpleNamespace(target_command=SimpleNamespace(**command), applied_effort=effort)
        self.permanent_wrench_composer = SimpleNamespace(set_forces_and_torques_index=_takes)

    def find_joints(self, names: Any, preserve_order: bool = False, as_proxy: bool = False) -> tuple[Any, list[str]]:
        """Return the joints that a name or pattern fits."""
        found, called = _find(names, self.joint_names, preserve_order)
        return (Numbers(found) if as_proxy else found), called

    def find_bodies(self, names: Any, preserve_order: bool = False) -> tuple[list[int], list[str]]:
        """Return the bodies that a name or pattern fits."""
        return _find(names, self.body_names, preserve_order)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("write_"):
            return _takes
        raise AttributeError(name)


BaseArticulation.register(Asset)


class Sensor(Asset):
    """A contact sensor on some bodies."""

    num_sensors = property(lambda self: self.num_bodies)

    def __init__(self, body_names: list[str]) -> None:
        super().__init__([], body_names)
        self.data = SimpleNamespace(net_forces_w=SimpleNamespace(torch=random(ENVS, self.num_bodies, 3)))

    def find_sensors(self, names: Any, preserve_order: bool = False) -> tuple[list[int], list[str]]:
        """Return the bodies that a name or pattern fits."""
        return self.find_bodies(names, preserve_order)


def _takes(**values: Any) -> None:
    """Take what a writer of an asset takes; a tensor of the host is a stranger."""
    for name, value in values.items():
        assert not isinstance(value, torch.Tensor) or value.device.type == "virtual", name


def _find(names: Any, known: list[str], in_order: bool) -> tuple[list[int], list[str]]:
    patterns = [names] if isinstance(names, str) else list(names)
    if in_order:
        found = [index for text in patterns for index, name in enumerate(known) if re.fullmatch(text, name)]
    else:
        found = [index for index, name in enumerate(known) if any(re.fullmatch(text, name) for text in patterns)]
    return found, [known[index] for index in found]


class Scene(dict):
    """Assets by name."""

    def __init__(self, cfg: Any) -> None:
        super().__init__()
        self.env_origins = random(ENVS, 3)
        robot = None
        for name, part in vars(cfg).items():
            if isinstance(part, ArticulationCfg):
                module, _, name_of_facts = part.spawn.facts.partition(":")
                robot = getattr(import_module(module), name_of_facts)
                self[name] = Asset(list(robot.joint_names), list(robot.link_names))
            elif isinstance(part, RigidObjectCfg):
                self[name] = Asset([], ["body"])
            elif isinstance(part, ContactSensorCfg):
                pattern = part.prim_path.rpartition("/")[2]
                self[name] = Sensor([link for link in robot.link_names if re.fullmatch(pattern, link)])
        self.sensors, self.terrain = {}, None
        if hasattr(cfg, "terrain"):
            self.terrain = _terrain()
            self.env_origins = self.terrain.env_origins


def _terrain() -> SimpleNamespace:
    """Return a small parkour field of random heights."""
    kinds = list(TRACKS)
    heights = (100 * torch.rand(40, 40)).int().numpy()
    terrain = SimpleNamespace(
        height_field=HeightField(heights, 0.1, 0.005, 0.2, DEVICE),
        column_types=kinds,
        terrain_types=(torch.arange(ENVS) % len(kinds)).to(DEVICE),
        terrain_levels=torch.zeros(ENVS, dtype=torch.long).to(DEVICE),
        max_terrain_level=3,
        terrain_origins=random(3, len(kinds), 3),
        env_origins=random(ENVS, 3),
        flat_patches={"goals": random(3, len(kinds), GOALS, 3)},
    )
    terrain.update_env_origins = lambda *args: TerrainImporter.update_env_origins(terrain, *args)
    return terrain


class VirtualTask:
    """The terms of ours that a task has, around a scene of random tensors."""

    def __init__(self, task: str, *overrides: str) -> None:
        """Make all terms on the device.

        Args:
            task: Id of the task.
            overrides: Settings of the task. Defaults to PhysX without Kit.
        """
        cfg, _ = resolve_task_config(task, None, overrides=list(overrides) or ["physics=ovphysx"])
        cfg.complete()
        for command in vars(cfg.commands).values() if cfg.commands is not None else ():
            command.debug_vis = False
        self.cfg, self.num_envs, self.device = cfg, ENVS, DEVICE
        self.scene = Scene(cfg.scene)
        self.physics_dt, self.step_dt = cfg.sim.dt, cfg.sim.dt * cfg.decimation
        self.max_episode_length_s = cfg.episode_length_s
        self.max_episode_length = round(cfg.episode_length_s / self.step_dt)
        self.common_step_counter, self.extras = 0, {}
        self.episode_length_buf = torch.ones(ENVS, dtype=torch.long).to(DEVICE)
        self.reset_buf = torch.zeros(ENVS, dtype=torch.bool).to(DEVICE)
        self.reward_buf = random(ENVS)
        self.action_manager = SimpleNamespace(action=random(ENVS, 40), prev_action=random(ENVS, 40))
        self.event_manager = SimpleNamespace(get_term_cfg=self._event)
        registry = SimpleNamespace(clear_debug_vis_callback=lambda term: None)
        self.sim = SimpleNamespace(cfg=cfg.sim, vis_marker_registry=registry)
        self.called: set[str] = set()
        """Names of the terms that were called."""
        self.commands = {name: term.class_type(term, self) for name, term in _own(cfg.commands, "class_type")}
        self.command_manager = SimpleNamespace(get_term=self.commands.__getitem__)
        self.actions = [term.class_type(term, self) for _, term in _own(cfg.actions, "class_type")]
        groups = [group for group in vars(cfg.observations).values() if group is not None]
        self.observations = [self._made(term) for group in groups for _, term in _own(group)]
        self.rewards, self.terminations, self.curricula, self.events = (
            [self._made(term) for _, term in _own(part)]
            for part in (cfg.rewards, cfg.terminations, cfg.curriculum, cfg.events)
        )
        self.measures = [*cfg.episode_sums.values(), *cfg.measures.values()]

    def step(self, resets: torch.Tensor | None = None) -> None:
        """Call everything that a step calls, and end some episodes.

        Args:
            resets: Numbers of the environments, on the device, as Isaac Lab hands them out. Defaults to none.
        """
        for term in self.actions:
            self.called.add(type(term).__name__)
            term.process_actions(self.action_manager.action[:, : term.action_dim])
            term.apply_actions()
        self.episode_length_buf += 1
        self.common_step_counter += 1
        for func, params in (*self.terminations, *self.rewards, *((measure, {}) for measure in self.measures)):
            self._call(func, **params)
        if resets is not None:
            self._reset(resets)
        for term in self.commands.values():
            self.called.add(type(term).__name__)
            term.compute(self.step_dt)
        for func, params in self.observations:
            self._call(func, **params)
        for func, _ in self.curricula:
            getattr(func, "update", lambda: None)()

    def _reset(self, ids: torch.Tensor) -> None:
        for func, params in (*self.curricula, *self.events):
            self._call(func, ids, **params)
        terms = [func for func, _ in (*self.observations, *self.rewards) if isinstance(func, ManagerTermBase)]
        for term in (*terms, *self.actions, *self.commands.values()):
            term.reset(ids)

    def move(self) -> None:
        """Let everything be somewhere else, as the engine does between two steps."""
        for asset in self.scene.values():
            if isinstance(asset.data, Data):
                asset.data.move()

    def _call(self, func: Any, *args: Any, **params: Any) -> None:
        self.called.add(func.__name__)
        result = func(self, *args, **params)
        assert not isinstance(result, torch.Tensor) or result.device.type == "virtual", func.__name__

    def _made(self, term: Any) -> tuple[Any, dict[str, Any]]:
        """Return a term ready to be called, and its arguments; scene entities are found as Isaac Lab finds them."""
        params = dict(term.params)
        signature = inspect.signature(term.func.__call__ if inspect.isclass(term.func) else term.func)
        for name, parameter in signature.parameters.items():
            if isinstance(parameter.default, SceneEntityCfg):
                params.setdefault(name, parameter.default.copy())
        for value in params.values():
            if isinstance(value, SceneEntityCfg):
                value.resolve(self.scene)
                value.finalize(DEVICE)
        term.params = params
        return (term.func(term, self) if inspect.isclass(term.func) else term.func), params

    def _event(self, name: str) -> Any:
        """Return an event of the start, which has drawn nothing: that speaks to the engine."""
        return SimpleNamespace(func=SimpleNamespace(drawn=False))


def _own(part: Any, kind: str = "func") -> list[tuple[str, Any]]:
    """Return the terms of a config that are ours and of every step or reset."""
    terms = part.items() if isinstance(part, dict) else vars(part).items() if part is not None else []
    found = [(name, term) for name, term in terms if callable(getattr(term, kind, None))]
    ours = [(name, term) for name, term in found if getattr(term, kind).__module__.startswith("epo_tasks")]
    return [(name, term) for name, term in ours if getattr(term, "mode", "reset") != "startup"]
