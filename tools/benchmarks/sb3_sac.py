"""Time gradient steps of Stable-Baselines3's SAC; it runs in an environment of its own, without this project."""

import sys
import time

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.logger import configure


class Nothing(gym.Env):
    """Spaces of the right size."""

    def __init__(self, obs: int, actions: int) -> None:
        """Create the spaces."""
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (obs,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (actions,), np.float32)


def main() -> None:
    """For every line that comes, print the processor's milliseconds of a gradient step."""
    obs, actions, width, batch, steps, rounds = map(int, sys.argv[1:])
    torch.set_num_threads(1)
    networks = {"net_arch": [width, width]}
    model = SAC("MlpPolicy", Nothing(obs, actions), ent_coef=0.2, policy_kwargs=networks, device="cpu", verbose=0)
    model.set_logger(configure(None, []))
    draw = np.random.default_rng(0)
    for _ in range(5000):
        rows = draw.standard_normal((2, 1, obs), dtype=np.float32)
        action = draw.uniform(-1, 1, (1, actions)).astype(np.float32)
        model.replay_buffer.add(rows[0], rows[1], action, draw.standard_normal(1), np.zeros(1), [{}])
    model.train(gradient_steps=10, batch_size=batch)
    for _ in range(rounds):
        sys.stdin.readline()
        begin = time.process_time()
        model.train(gradient_steps=steps, batch_size=batch)
        print((time.process_time() - begin) / steps * 1e3, flush=True)


if __name__ == "__main__":
    main()
