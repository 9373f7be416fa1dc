"""The seven robots with what they need to be simulated."""

from isaaclab.assets import ArticulationCfg, AssetBaseCfg
from isaaclab.scene import InteractiveSceneCfg
from isaaclab.utils import configclass

from epo_tasks.common.ground_cfg import GroundCfg
from epo_tasks.common.physics import GRIPPER_NEWTON, HAND_NEWTON, LEGGED_NEWTON, LEGGED_NEWTON_10MS
from epo_tasks.robots import allegro_hand, anymal_c, dmc_humanoid, franka_panda, kuka_allegro, shadow_hand, unitree_a1

ROBOTS = {
    "anymal_c": (anymal_c, anymal_c.ANYMAL_C_CFG, LEGGED_NEWTON_10MS, 0.01),
    "unitree_a1": (unitree_a1, unitree_a1.UNITREE_A1_CFG, LEGGED_NEWTON, 0.005),
    "dmc_humanoid": (dmc_humanoid, dmc_humanoid.HUMANOID_CFG, LEGGED_NEWTON, 1 / 120),
    "kuka_allegro": (kuka_allegro, kuka_allegro.KUKA_ALLEGRO_CFG, HAND_NEWTON, 1 / 120),
    "allegro_hand": (allegro_hand, allegro_hand.ALLEGRO_HAND_CFG, HAND_NEWTON, 1 / 120),
    "shadow_hand": (shadow_hand, shadow_hand.SHADOW_HAND_CFG, HAND_NEWTON, 1 / 120),
    "franka_panda": (franka_panda, franka_panda.FRANKA_PANDA_CFG, GRIPPER_NEWTON, 1 / 120),
}
FIXED = ("franka_panda", "kuka_allegro", "allegro_hand", "shadow_hand")


@configclass
class GroundSceneCfg(InteractiveSceneCfg):
    """Flat ground; tests put their robots on it."""

    env_spacing = 4.0
    ground = AssetBaseCfg(prim_path="/World/ground", spawn=GroundCfg(), collision_group=-1)


def scene_with(robot: ArticulationCfg, num_envs: int) -> GroundSceneCfg:
    """Return a scene with one robot an environment, called ``robot``."""
    cfg = GroundSceneCfg(num_envs=num_envs)
    cfg.robot = robot.replace(prim_path="{ENV_REGEX_NS}/Robot")
    return cfg
