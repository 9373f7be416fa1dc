"""Noise of every step and of every episode, and how it grows."""

import pytest
import torch

from epo_tasks.common.randomization import EpisodeNoise, share_of_ramp
from epo_tasks.common.randomization_cfg import EpisodeNoiseCfg

pytestmark = pytest.mark.unit

ENVS, SIZE = 200, 50


def noise(**settings) -> EpisodeNoise:
    torch.manual_seed(0)
    return EpisodeNoise(EpisodeNoiseCfg(**settings), ENVS, "cpu")


def test_white_noise_is_new_in_every_step_and_meant_after_scaling():
    model, data = noise(white=0.02, scale=(2.0,) * 25 + (0.25,) * 25), torch.full((ENVS, SIZE), 3.0)
    first, second = model(data) - 3.0, model(data) - 3.0
    assert (data == 3.0).all(), "the data themselves stay as they are"
    for part, expected in ((slice(0, 25), 0.01), (slice(25, 50), 0.08)):
        assert first[:, part].std().item() == pytest.approx(expected, rel=0.05)
        assert torch.corrcoef(torch.stack([first[:, part].flatten(), second[:, part].flatten()]))[0, 1].abs() < 0.05


def test_an_offset_stays_for_an_episode_and_is_drawn_anew_not_added_to():
    model, data = noise(per_episode=0.1), torch.zeros(ENVS, SIZE)
    first = model(data)
    assert first.std().item() == pytest.approx(0.1, rel=0.05) and (model(data) == first).all()
    for _ in range(30):
        model.reset(torch.arange(100))
    later = model(data)
    assert (later[100:] == first[100:]).all() and (later[:100] != first[:100]).all()
    assert later[:100].std().item() == pytest.approx(0.1, rel=0.05)


def test_noise_grows_linearly_over_the_ramp():
    model, data = noise(white=1.0, ramp_steps=4), torch.zeros(ENVS, SIZE)
    spreads = [model(data).std().item() for _ in range(6)]
    assert spreads == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0, 1.0], abs=0.03)
    assert share_of_ramp(0, 0) == 1.0
