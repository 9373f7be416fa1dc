"""Other observations and time steps of the in-hand tasks; each needs a simulation of its own."""

import pytest
import torch

from support.envs import make_env
from support.in_hand import HANDS, place_cube

pytestmark = pytest.mark.integration

NUM = 8


@pytest.mark.parametrize(
    ("name", "option", "size"), [("allegro", "env.fingertips=true", 124), ("shadow", "env.full_state=true", 211)]
)
def test_policies_can_see_more(name, option, size):
    hand = HANDS[name]
    with make_env(hand.task, option, num_envs=NUM) as env:
        assert env.observation_manager.group_obs_dim["policy"] == (size,)
        obs = env.step(torch.ones(NUM, len(hand.motors)))[0]["policy"]
        assert torch.isfinite(obs).all() and (obs.abs() <= 5.0).all()
        if name == "shadow":
            torques = obs[:, -20 - 54 : -20 - 30]
            driven = [env.scene["robot"].joint_names.index(joint) for joint in ("FFJ2", "MFJ2", "RFJ2")]
            assert (torques[:, driven] > 0.1).all(), "motors that bend a finger are felt in its joint"


@pytest.mark.slow
@pytest.mark.parametrize("name", HANDS)
def test_rewards_do_not_depend_on_how_a_step_is_divided(name):
    """Cubes fall freely, which is the same in both; nothing but the time step can change what they earn."""
    hand, totals = HANDS[name], []
    decimation = {"allegro": 4, "shadow": 2}[name]
    for overrides in ((), ("env.sim.dt=0.00416666667", f"env.decimation={2 * decimation}")):
        with make_env(hand.task, *overrides, num_envs=NUM, seed=3) as env:
            assert env.max_episode_length == 600 and env.step_dt == pytest.approx(hand.step_dt)
            place_cube(env, (0.0, 0.0, 0.2))
            total = torch.zeros(NUM)
            for _ in range(3):
                total += env.step(torch.full((NUM, len(hand.motors)), -1.0))[1]
            totals.append(total)
    torch.testing.assert_close(totals[1], totals[0], rtol=0.01, atol=0.02)
