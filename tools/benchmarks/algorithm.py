"""Measure what a population costs: EPO against rsl_rl's PPO on random data, as ratios within one run."""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from rsl_rl.env import VecEnv
from rsl_rl.utils import resolve_callable
from tensordict import TensorDict

from epo_lab.base.device import check_device, default_device
from epo_lab.configs.presets import agent_preset

from .operations import count_operations

OBS, ACTIONS, STEPS = 196, 46, 16
LIMITS = {
    "update, MLP": 1.15,
    "update, LSTM": 1.25,
    "act, MLP": 1.10,
    "bytes, MLP": 1.05,
    "generation / update": 0.01,
    "operations a step, MLP": 1.3,
    "operations a step, LSTM": 1.3,
    "operations an update, MLP": 1.3,
    "operations an update, LSTM": 1.3,
}
"""Largest ratio that we accept."""
MLP = {"class_name": "MLPModel", "hidden_dims": [512, 256, 128], "activation": "elu"}
LSTM = {
    "class_name": "RNNModel",
    "hidden_dims": [128],
    "rnn_type": "lstm",
    "rnn_hidden_dim": 256,
    "activation": "elu",
}


class RandomEnv(VecEnv):
    """Random observations and rewards of the size of the two-arm task; an episode ends now and then."""

    def __init__(self, num_envs: int, device: str) -> None:
        self.num_envs, self.num_actions, self.device = num_envs, ACTIONS, device
        self.max_episode_length, self.cfg = 600, {}
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long, device=device)
        self._extras = {"time_outs": torch.zeros(num_envs, dtype=torch.bool, device=device)}

    def get_observations(self) -> TensorDict:
        """Return random observations."""
        obs = torch.randn(self.num_envs, OBS, device=self.device)
        return TensorDict({"policy": obs}, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Return random numbers."""
        rewards = torch.randn(self.num_envs, device=self.device)
        dones = (torch.rand(self.num_envs, device=self.device) < 0.01).long()
        return self.get_observations(), rewards, dones, self._extras


def benchmark_algorithm(args: argparse.Namespace) -> int:
    """Print the ratios and the limits; return 1 if one is exceeded."""
    device = args.device or default_device()
    check_device(device)
    ratios = measure(device, args.num_agents, args.repeats)
    threads = f", {torch.get_num_threads()} threads" if device == "cpu" else ""
    print(f"EPO with {args.num_agents} agents / rsl_rl PPO on {device}{threads}; median of {args.repeats} pairs")
    for name, (ratio, low, high) in ratios.items():
        verdict = "ok" if ratio <= LIMITS[name] else "TOO MUCH"
        print(f"{name:<26} {ratio:7.4f}  ({low:.4f} to {high:.4f})  at most {LIMITS[name]}  {verdict}")
    return int(any(ratio > LIMITS[name] for name, (ratio, _, _) in ratios.items()))


def measure(device: str, num_agents: int, repeats: int) -> dict[str, tuple[float, float, float]]:
    """Return median, least and largest ratio of every measure."""
    ratios: dict[str, tuple[float, float, float]] = {}
    for name, model, num_envs in (("MLP", MLP, 2048), ("LSTM", LSTM, 256)):
        env = RandomEnv(num_envs, device)
        pair = [make_algorithm(env, model, agents, device) for agents in (1, num_agents)]
        times = [_measure_pair(pair, env, device) for _ in range(repeats + 1)][1:]
        for column, what in enumerate(("act", "update")):
            found = sorted(both[1][column] / both[0][column] for both in times)
            ratios[f"{what}, {name}"] = (statistics.median(found), found[0], found[-1])
        one, many = [count_operations(algorithm, env, STEPS) for algorithm in pair]
        for column, what in enumerate(("a step", "an update")):
            ratio = many[column] / one[column]
            ratios[f"operations {what}, {name}"] = (ratio, ratio, ratio)
        if name == "MLP":
            size = held_bytes(pair[1]) / held_bytes(make_algorithm(env, model, 1, device, "epo_lab.algorithms:EPO"))
            ratios["bytes, MLP"] = (size, size, size)
            update = statistics.median(both[1][1] for both in times)
            found = sorted(_time(lambda alg=pair[1]: _generation(alg), device) / update for _ in range(repeats))
            ratios["generation / update"] = (statistics.median(found), found[0], found[-1])
    return {name: ratios[name] for name in LIMITS}


def held_bytes(algorithm: Any) -> int:
    """Return the bytes of parameters and storage."""
    parameters = {id(p): p for model in (algorithm.actor, algorithm.critic) for p in model.parameters()}
    return sum(p.nbytes for p in parameters.values()) + sum(_bytes(part) for part in vars(algorithm.storage).values())


def _bytes(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.nbytes
    if isinstance(value, TensorDict):
        return sum(_bytes(part) for part in value.values())
    return sum(_bytes(part) for part in value) if isinstance(value, list | tuple) else 0


def make_algorithm(env: RandomEnv, model: dict[str, Any], agents: int, device: str, one: str = "PPO") -> Any:
    """Return EPO with so many agents, or rsl_rl's PPO, after a first iteration."""
    gaussian = {"class_name": "GaussianDistribution", "init_std": 1.0, "std_type": "log"}
    algorithm: dict[str, Any] = {"class_name": one, "num_learning_epochs": 2, "num_mini_batches": 4}
    if agents > 1:
        algorithm |= agent_preset("epo")["algorithm"] | {"class_name": "epo_lab.algorithms:EPO", "num_agents": agents}
    elif one != "PPO":
        algorithm["num_agents"] = 1
    cfg = {
        "seed": 0,
        "num_steps_per_env": STEPS,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**model, "distribution_cfg": gaussian},
        "critic": dict(model),
        "algorithm": algorithm,
        "multi_gpu": None,
    }
    alg_class = resolve_callable(algorithm["class_name"])
    with contextlib.redirect_stdout(io.StringIO()):
        made = alg_class.construct_algorithm(env.get_observations(), env, cfg, device)  # type: ignore[attr-defined]
    made.train_mode()
    _iteration(made, env, device)
    return made


def _measure_pair(pair: list[Any], env: RandomEnv, device: str) -> list[tuple[float, float]]:
    """Return (act, update) seconds of both algorithms, one right after the other."""
    return [_iteration(algorithm, env, device) for algorithm in pair]


def _iteration(algorithm: Any, env: RandomEnv, device: str) -> tuple[float, float]:
    act = 0.0
    with torch.inference_mode():
        obs = env.get_observations()
        for _ in range(STEPS):
            actions: list[torch.Tensor] = []
            act += _time(lambda obs=obs, actions=actions: actions.append(algorithm.act(obs)), device)
            obs, rewards, dones, extras = env.step(actions[0])
            algorithm.process_env_step(obs, rewards, dones, extras)

    def learn() -> None:
        with torch.inference_mode():
            algorithm.compute_returns(obs)
        algorithm.update()

    return act, _time(learn, device)


def _generation(algorithm: Any) -> None:
    """Make every follower look evaluated, and let a generation happen."""
    fitness = algorithm.fitness
    state = fitness.state_dict()
    ones, values = torch.ones_like(state["episodes"]), torch.randn_like(state["last"])
    fitness.load_state_dict(state | {"episodes": ones, "last": values})
    algorithm.evolution._next_check = 0
    algorithm.evolve()


def _time(function: Callable[[], Any], device: str) -> float:
    """Return seconds: of the processor on a CPU, so that others on the machine do not count; of the clock on a GPU."""
    if not device.startswith("cuda"):
        begin = time.process_time()
        function()
        return time.process_time() - begin
    torch.cuda.synchronize(device)
    begin = time.perf_counter()
    function()
    torch.cuda.synchronize(device)
    return time.perf_counter() - begin
