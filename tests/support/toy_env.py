"""A tiny environment with random resets and time-outs, in pure torch."""

from __future__ import annotations

from typing import Any

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict


class ToyEnv(VecEnv):
    """Five observations, three actions; the reward likes actions near a moving target."""

    def __init__(self, num_envs: int = 16, obs_dim: int = 5, num_actions: int = 3, seed: int = 0) -> None:
        self.num_envs, self.num_actions, self.device = num_envs, num_actions, "cpu"
        self.max_episode_length = 20
        self.cfg: dict[str, Any] = {}
        self._generator = torch.Generator().manual_seed(seed)
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self._state = self._draw(num_envs, obs_dim)

    def _draw(self, *shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=self._generator)

    def get_observations(self) -> TensorDict:
        return TensorDict({"policy": self._state.clone()}, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict]:
        target = self._state[:, : self.num_actions].tanh()
        rewards = 1.0 - (actions - target).square().mean(dim=-1)
        self._state = 0.8 * self._state + 0.3 * self._draw(*self._state.shape)
        self._state[:, : self.num_actions] += 0.1 * actions.clamp(-1, 1)
        self.episode_length_buf += 1
        time_outs = self.episode_length_buf >= self.max_episode_length
        falls = torch.rand(self.num_envs, generator=self._generator) < 0.05
        dones = time_outs | falls
        fresh = self._draw(*self._state.shape)
        self._state = torch.where(dones.unsqueeze(-1), fresh, self._state)
        self.episode_length_buf[dones] = 0
        extras = {"time_outs": time_outs, "score": rewards.detach().clone()}
        return self.get_observations(), rewards, dones.long(), extras


def settings(recurrent: str | None = None, **algorithm: Any) -> dict[str, Any]:
    """Return the settings of a runner for the toy environment; ``algorithm`` goes to the algorithm."""
    model: dict[str, Any] = {"class_name": "MLPModel", "hidden_dims": [16, 16], "activation": "elu"}
    if recurrent:
        model |= {"class_name": "RNNModel", "rnn_type": recurrent, "rnn_hidden_dim": 8, "rnn_num_layers": 1}
    gaussian = {"class_name": "GaussianDistribution", "init_std": 1.0, "std_type": "log"}
    ppo = {"class_name": "epo_lab.algorithms:EPO", "num_learning_epochs": 2, "num_mini_batches": 4}
    return {
        "seed": 1,
        "num_steps_per_env": 8,
        "save_interval": 1000,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**model, "distribution_cfg": gaussian, "obs_normalization": True},
        "critic": {**model, "obs_normalization": True},
        "algorithm": {**ppo, **nested(algorithm)},
        "multi_gpu": None,
    }


def make(env: ToyEnv, cfg: dict[str, Any], seed: int = 0) -> Any:
    """Construct the algorithm that the settings name, as a runner does."""
    from rsl_rl.utils import resolve_callable

    torch.manual_seed(seed)
    algorithm = resolve_callable(cfg["algorithm"]["class_name"]).construct_algorithm(
        env.get_observations(), env, cfg, "cpu"
    )
    algorithm.train_mode()
    return algorithm


def rollout(algorithm: Any, env: ToyEnv, steps: int) -> None:
    """Collect one roll-out and compute its returns, in inference mode as a runner does."""
    with torch.inference_mode():
        obs = env.get_observations()
        for _ in range(steps):
            actions = algorithm.act(obs)
            obs, rewards, dones, extras = env.step(actions)
            algorithm.process_env_step(obs, rewards, dones, extras)
        algorithm.compute_returns(obs)


def batches(algorithm: Any, count: int) -> Any:
    """Yield the mini-batches of one epoch."""
    recurrent = algorithm.actor.is_recurrent
    storage = algorithm.storage
    return (storage.recurrent_mini_batch_generator if recurrent else storage.mini_batch_generator)(count, 1)


def train(algorithm: Any, env: ToyEnv, iterations: int, steps: int = 8) -> list[dict[str, float]]:
    """Run some iterations and return their losses."""
    losses = []
    for _ in range(iterations):
        rollout(algorithm, env, steps)
        losses.append(algorithm.update())
    return losses


def nested(options: dict[str, Any]) -> dict[str, Any]:
    """Return ``{"evolution__trigger": "off"}`` as ``{"evolution": {"trigger": "off"}}``."""
    result: dict[str, Any] = {}
    for name, value in options.items():
        group, _, option = name.rpartition("__")
        (result.setdefault(group, {}) if group else result)[option] = value
    return result
