"""Run a small scene on either kit-less engine, without an environment around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from isaaclab.assets import Articulation
from isaaclab.scene import InteractiveScene, InteractiveSceneCfg
from isaaclab.sim import RigidBodyMaterialCfg, SimulationCfg, SimulationContext
from isaaclab.sim.utils import use_stage
from isaaclab_newton.physics import NewtonCfg
from isaaclab_tasks.utils import resolve_presets

from epo_tasks.common.compat import allow_pinned_memory_without_cuda, limit_ovphysx_threads
from epo_tasks.common.physics import physics_presets

ENGINES = ("ovphysx", "newton_mjwarp")


@dataclass
class World:
    """A running scene."""

    sim: SimulationContext
    scene: InteractiveScene

    def step(self, count: int = 1) -> None:
        """Advance the physics."""
        dt = self.sim.cfg.dt
        for _ in range(count):
            self.scene.write_data_to_sim()
            self.sim.step(render=False)
            self.scene.update(dt)

    def reset(self) -> None:
        """Put every articulation and rigid object in its default state, at rest."""
        self.scene.reset()
        origins = self.scene.env_origins
        robots = list(self.scene.articulations.values())
        for asset in (*robots, *self.scene.rigid_objects.values()):
            pose = asset.data.default_root_pose.torch.clone()
            pose[:, :3] += origins
            asset.write_root_pose_to_sim_index(root_pose=pose)
            asset.write_root_velocity_to_sim_index(root_velocity=torch.zeros_like(asset.data.root_vel_w.torch))
        for robot in robots:
            set_joints(robot, robot.data.default_joint_pos.torch)
            aim(robot, robot.data.default_joint_pos.torch)


def set_joints(robot: Articulation, position: torch.Tensor) -> None:
    """Place the joints at rest."""
    robot.write_joint_position_to_sim_index(position=position)
    robot.write_joint_velocity_to_sim_index(velocity=torch.zeros_like(position))


def aim(robot: Articulation, target: torch.Tensor) -> None:
    """Set the position targets of the drives."""
    robot.actuators.target_command.set_position_index(value=target)


@contextmanager
def simulate(engine: str, scene_cfg: InteractiveSceneCfg, newton: NewtonCfg, dt: float) -> Iterator[World]:
    """Build the scene on ``engine``, reset it and hand it out; everything is torn down afterwards."""
    allow_pinned_memory_without_cuda()
    physics = resolve_presets(physics_presets(newton, bounce_threshold=0.2), {engine})
    material = RigidBodyMaterialCfg(static_friction=1.0, dynamic_friction=1.0)
    sim = SimulationContext(SimulationCfg(device="cpu", dt=dt, physics=physics, physics_material=material))
    try:
        limit_ovphysx_threads(sim)
        with use_stage(sim.stage):
            scene = InteractiveScene(resolve_presets(scene_cfg, {engine}))
        sim.register_interactive_scene(scene)
        with use_stage(sim.stage):
            sim.reset()
        world = World(sim, scene)
        scene.update(dt)
        world.reset()
        yield world
    finally:
        sim.clear_instance()
