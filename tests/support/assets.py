"""Stand-ins for the files on Isaac Sim's content server, so that Isaac Lab's own tasks run without a network."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from pxr import Usd, UsdGeom, UsdPhysics

from epo_tasks.robots.allegro_hand import FACTS as ALLEGRO_HAND
from epo_tasks.robots.facts import Joint, Link, RobotFacts, Shape, load_facts
from epo_tasks.robots.usd import write_usd

GROUND = "Isaac/IsaacLab/Environments/Grid/default_ground_plane_checker_v1/default_ground_plane.usda"
CUBE = "Isaac/Props/Blocks/DexCube/dex_cube_instanceable.usd"
VARIABLE = "ISAACSIM_ASSET_ROOT"
"""Where Isaac Lab looks for assets instead of on the server."""


def write_assets(root: Path) -> dict[str, str]:
    """Write ground, cart and pole, a quadruped, a hand and a cube; return a process's variables to find them."""
    robots = {
        "Isaac/IsaacLab/Robots/Classic/Cartpole/cartpole.usd": cart_and_pole(),
        "Isaac/IsaacLab/Robots/Unitree/Go2/go2.usd": quadruped(),
        "Isaac/Robots/WonikRobotics/AllegroHand/allegro_hand_instanceable.usd": ALLEGRO_HAND,
    }
    for name, facts in robots.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_usd(path, facts, self_collision=False)
    _write_ground(root / GROUND)
    _write_cube(root / CUBE)
    return {**os.environ, VARIABLE: str(root)}


def cart_and_pole() -> RobotFacts:
    """Return a cart on a rail with a pole of 1 m."""
    here, still = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    box = Shape("box", {"x": 0.2, "y": 0.3, "z": 0.2}, here, still)
    links = (
        Link("rail", 1.0, here, (0.01, 0.01, 0.01, 0.0, 0.0, 0.0)),
        Link("cart", 1.0, here, (0.01, 0.01, 0.01, 0.0, 0.0, 0.0), (box,)),
        Link("pole", 0.1, (0.0, 0.0, 0.5), (0.0084, 0.0084, 1e-4, 0.0, 0.0, 0.0)),
    )
    motor = {"rpy": still, "effort": 400.0, "velocity": 100.0, "damping": 0.0, "friction": 0.0}
    joints = (
        Joint("slider_to_cart", "rail", "cart", "prismatic", here, axis=(0.0, 1.0, 0.0), lower=-4, upper=4, **motor),
        Joint("cart_to_pole", "cart", "pole", "revolute", here, axis=(1.0, 0.0, 0.0), lower=-60.0, upper=60.0, **motor),
    )
    return RobotFacts("cartpole", links, joints, {"root_link": "rail", "fixed_base": True, "end_links": []})


def quadruped() -> RobotFacts:
    """Return the A1, whose joints have the names of the Go2's, with the Go2's name of the trunk."""
    facts = load_facts("unitree_a1")
    links = tuple(replace(link, name="base") if link.name == "trunk" else link for link in facts.links)
    joints = tuple(replace(joint, parent="base") if joint.parent == "trunk" else joint for joint in facts.joints)
    return replace(facts, links=links, joints=joints, extras={**facts.extras, "root_link": "base"})


def _write_ground(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    stage = Usd.Stage.CreateNew(str(path))
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/World").GetPrim())
    plane = UsdGeom.Plane.Define(stage, "/World/CollisionPlane")
    plane.CreateAxisAttr(UsdGeom.Tokens.z)
    UsdPhysics.CollisionAPI.Apply(plane.GetPrim())
    stage.GetRootLayer().Save()


def _write_cube(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    stage = Usd.Stage.CreateNew(str(path))
    body = UsdGeom.Xform.Define(stage, "/object").GetPrim()
    stage.SetDefaultPrim(body)
    UsdPhysics.RigidBodyAPI.Apply(body)
    UsdPhysics.MassAPI.Apply(body).CreateMassAttr(0.1)
    cube = UsdGeom.Cube.Define(stage, "/object/shape")
    cube.CreateSizeAttr(0.05)
    UsdPhysics.CollisionAPI.Apply(cube.GetPrim())
    stage.GetRootLayer().Save()
