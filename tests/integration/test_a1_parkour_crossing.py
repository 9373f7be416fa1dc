"""A trot without learning crosses flat ground and a gap of the first level."""

import pytest
import torch
from scripted.parkour import OVERRIDES, ScriptedTrot

from support.envs import make_env
from support.parkour import TASK, goals_of
from support.simulate import ENGINES

# the way takes half a minute on an idle machine
pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1800)]

NUM = 30
TERRAIN = "env.scene.terrain.terrain_generator"
FIELD = (f"{TERRAIN}.num_rows=2", f"{TERRAIN}.num_cols=5", f"{TERRAIN}.horizontal_scale=0.05")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_scripted_trot_crosses_flat_ground_and_a_gap(engine):
    """About one try in six gets over the gap; who falls tries again, for at most twenty seconds."""
    with make_env(TASK, f"physics={engine}", *OVERRIDES, *FIELD, num_envs=NUM) as env:
        terrain = env.scene.terrain
        flat, gaps = terrain.terrain_types == 2, terrain.terrain_types == 4
        # the platform begins 1.5 m ahead of the start, the second goal is in its middle, the gap at its end
        start = terrain.terrain_origins[0, 4]
        gap = 2.0 * (terrain.flat_patches["goals"][0, 4, 1] - start)[0].item() - 1.5
        assert terrain.height_field.surface(start[:2] + torch.tensor([gap, 0.0])) < -0.1
        trot, farthest, reached = ScriptedTrot(env), torch.zeros(NUM), torch.zeros(NUM, dtype=torch.long)
        for _ in range(1000):
            env.step(trot.act())
            position = env.scene["robot"].data.root_link_pos_w.torch - env.scene.env_origins
            # who stands in a trench has not crossed it
            farthest = torch.maximum(farthest, torch.where(position[:, 2] > 0.15, position[:, 0], 0.0))
            reached = torch.maximum(reached, goals_of(env).reached)
            # hind feet are 0.25 m behind the base
            crossed = farthest[gaps].max() > gap + 0.4
            if crossed and farthest[flat].median() > 2.5:
                break
    assert farthest[flat].median() > 2.5 and reached[flat].max() >= 2
    assert crossed, farthest[gaps]
