"""``Epo-Franka-CubeStack-v0``: put a cube on a larger one and let go.

The reward also pays for holding the cube over the other for ever, and more than success does: read the success rate.
"""

from __future__ import annotations

from isaaclab.assets import RigidObjectCfg
from isaaclab.utils import configclass

from .env_cfg import EDGE, GREEN, TABLE_TOP, CommandsCfg, FrankaEnvCfg, FrankaSceneCfg, cube, reward
from .mdp import rewards
from .mdp.goal_cfg import StackGoalCfg

BASE_EDGE = 0.07
HOLDING = 3.6
"""Most that a step without success pays: 0.1 + 1.5 + 2."""


@configclass
class StackSceneCfg(FrankaSceneCfg):
    """With a larger cube to stack on."""

    base_cube: RigidObjectCfg = cube("BaseCube", BASE_EDGE, GREEN, -0.1)


@configclass
class StackRewardsCfg:
    """Success, or the three others, in every step."""

    reaching = reward(rewards.stack_reaching, 0.1)
    lifting = reward(rewards.stack_lifting, 1.5)
    aligning = reward(rewards.stack_aligning, 2.0)
    success = reward(rewards.stack_success, 16.0)
    remaining = reward(rewards.steps_left_at_success, 0.0)


@configclass
class CubeStackEnvCfg(FrankaEnvCfg):
    """A cube is stacked on another. Holding it there for the whole episode returns up to 1,076, stacking less."""

    pay_remaining: bool = False
    """Whether success also pays 3.6 for every step that is left, so that stacking is the best policy. Default False, as
    in the reference."""

    scene: StackSceneCfg = StackSceneCfg()
    commands: CommandsCfg = CommandsCfg(
        goal=StackGoalCfg(
            table_top=TABLE_TOP,
            edge=EDGE,
            goal_edge=BASE_EDGE,
            # the reference takes the small cube's size by mistake and starts this one 10 mm inside the table, at 1.05
            goal_height=TABLE_TOP + BASE_EDGE / 2.0,
        )
    )
    rewards: StackRewardsCfg = StackRewardsCfg()

    def complete(self) -> None:
        """Put the pay for remaining steps in place."""
        self.rewards.remaining = reward(rewards.steps_left_at_success, HOLDING) if self.pay_remaining else None

    def note(self) -> str:
        """Say that returns are not comparable."""
        return "success pays for remaining steps (env.pay_remaining)" if self.pay_remaining else ""
