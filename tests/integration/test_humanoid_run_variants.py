"""Other bodies, observations and time steps of ``Epo-Humanoid-Run-v0``; each needs a simulation of its own."""

import isaaclab_tasks  # noqa: F401
import numpy as np
import pytest
import torch
from isaaclab_tasks.utils import resolve_task_config

import epo_tasks  # noqa: F401
from epo_lab.base.errors import UserError
from epo_tasks.robots.dmc_humanoid import DMC_FACTS
from support.envs import make_env
from support.simulate import set_joints

pytestmark = pytest.mark.integration

TASK = "Epo-Humanoid-Run-v0"
NUM = 8


def test_control_suite_body_and_observation_can_be_chosen():
    with make_env(TASK, "env.body=dmc", "env.observation=dmc", "env.speed_cap=null", num_envs=NUM) as env:
        assert env.observation_manager.group_obs_dim["policy"] == (67,)
        assert env.reward_manager.get_term_cfg("progress").params["speed_cap"] is None
        action = 2.0 * torch.rand(NUM, 21) - 1.0
        env.step(action)
        torque = env.action_manager.get_term("joint_effort").processed_actions
        robot, hip = env.scene["robot"], env.scene["robot"].joint_names.index("right_hip_y")
        torch.testing.assert_close(torque[:, hip], 120.0 * action[:, hip])
        env.reset()
        set_joints(robot, torch.zeros(NUM, 21))
        obs = env.observation_manager.compute()["policy"]
        # hands and feet of the figure with all angles zero, from the torso
        poses = DMC_FACTS.link_poses()
        expected = []
        for name in ("left_hand", "left_foot", "right_hand", "right_foot"):
            offset = DMC_FACTS.extras["frame_offsets"].get(name, (0.0, 0.0, 0.0))
            expected += (poses[name][0] @ np.array(offset) + poses[name][1]).tolist()
        torch.testing.assert_close(obs[:, 22:34], torch.tensor(expected).expand(NUM, 12), atol=1e-3, rtol=0)
        torch.testing.assert_close(obs[:, 21], torch.full((NUM,), 1.53), atol=1e-3, rtol=0)
        torch.testing.assert_close(obs[:, 34:37], torch.tensor([0.0, 0.0, 1.0]).expand(NUM, 3), atol=1e-4, rtol=0)
        assert (obs[:, 40:].abs() < 1e-3).all() and robot.num_joints == 21


def test_an_unknown_body_is_refused():
    cfg, _ = resolve_task_config(TASK, None, overrides=["env.body=robot"])
    with pytest.raises(UserError, match="isaac_gym, dmc"):
        cfg.complete()


@pytest.mark.slow
def test_rewards_do_not_depend_on_how_a_step_is_divided():
    means = []
    for overrides in ((), ("env.sim.dt=0.00416666667", "env.decimation=4")):
        with make_env(TASK, *overrides, num_envs=64) as env:
            total = torch.stack([env.step(torch.zeros(64, 21))[1].mean() for _ in range(15)])
            assert env.max_episode_length == 1000
            means.append(total.mean().item())
    assert means[1] == pytest.approx(means[0], rel=0.01)
