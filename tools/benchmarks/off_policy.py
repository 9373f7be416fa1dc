"""Measure a gradient step of SAC, with the replay's share, and next to Stable-Baselines3's if that is at hand."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from epo_lab.algorithms import SAC
from epo_lab.base.errors import UserError

OBS, ACTIONS = 17, 6
"""Sizes of HalfCheetah."""
LARGEST_RATIO = 0.8
"""Share of Stable-Baselines3's time that we accept."""
STEPS = 40


class RandomEnv(VecEnv):
    """Random observations and rewards."""

    num_envs, num_actions, max_episode_length, device = 1, ACTIONS, 1000, "cpu"
    cfg: Any = {}

    def get_observations(self) -> TensorDict:
        """Return random observations."""
        return TensorDict({"policy": torch.randn(1, OBS)}, [1])

    def step(self, actions: torch.Tensor) -> Any:
        """Return random numbers."""
        flags = torch.zeros(1, dtype=torch.long)
        return self.get_observations(), torch.randn(1), flags, {"time_outs": flags.bool()}


def benchmark_off_policy(args: argparse.Namespace) -> int:
    """Print milliseconds and the ratio; return 1 if it is too large."""
    torch.set_num_threads(1)
    algorithm = make(args.width, args.batch_size)
    ours, theirs = [], []
    for _ in range(args.repeats):
        ours.append(_milliseconds(algorithm.gradient_step))
        if args.sb3:
            theirs += _sb3(args.sb3, args.width, args.batch_size)
    sampling = _milliseconds(lambda: algorithm.replay.sample(args.batch_size, 1, 0.99))
    size = f"2 x {args.width}, batch {args.batch_size}, one thread"
    print(f"SAC gradient step, {size}: {statistics.median(ours):.2f} ms ({min(ours):.2f} to {max(ours):.2f})")
    print(f"of which the replay: {sampling:.2f} ms")
    if not theirs:
        return 0
    pairs = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    ratio = statistics.median(pairs)
    print(f"Stable-Baselines3: {statistics.median(theirs):.2f} ms ({min(theirs):.2f} to {max(theirs):.2f})")
    verdict = "ok" if ratio <= LARGEST_RATIO else "TOO MUCH"
    print(f"ratio {ratio:.2f} ({pairs[0]:.2f} to {pairs[-1]:.2f})  at most {LARGEST_RATIO}  {verdict}")
    return int(ratio > LARGEST_RATIO)


def make(width: int, batch_size: int) -> SAC:
    """Return SAC as ESAC's baseline has it, with 5,000 transitions."""
    from epo_lab.configs.presets import agent_preset

    preset = agent_preset("sac_classic")
    network = {"class_name": "MLPModel", **preset["actor"], "hidden_dims": [width, width]}
    cfg = {
        "seed": 0,
        "num_steps_per_env": 1,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": network,
        "critic": network,
        "algorithm": {**preset["algorithm"], "batch_size": batch_size, "warmup_steps": 0, "replay": {"size": 5000}},
    }
    env = RandomEnv()
    with contextlib.redirect_stdout(io.StringIO()):
        algorithm: Any = SAC.construct_algorithm(env.get_observations(), env, cfg, "cpu")
        algorithm.train_mode()
    with torch.inference_mode():
        obs = env.get_observations()
        for _ in range(5000):
            obs, rewards, dones, extras = env.step(algorithm.act(obs))
            algorithm.process_env_step(obs, rewards, dones, extras)
        algorithm.compute_returns(obs)
    for _ in range(10):
        algorithm.gradient_step()
    return algorithm


def _milliseconds(function: Any) -> float:
    """Return the processor's time of a call, so that others on the machine do not count."""
    begin = time.process_time()
    for _ in range(STEPS):
        function()
    return (time.process_time() - begin) / STEPS * 1e3


def _sb3(python: str, width: int, batch_size: int) -> list[float]:
    script = Path(__file__).with_name("sb3_sac.py")
    numbers = map(str, (OBS, ACTIONS, width, batch_size, STEPS, 1))
    try:
        result = subprocess.run([python, str(script), *numbers], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise UserError(f"--sb3 {python} has no Stable-Baselines3: uv pip install stable-baselines3 there") from None
    return json.loads(result.stdout)
