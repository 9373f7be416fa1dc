"""Measure off-policy learning and evolution, as ratios within one run: see :data:`LARGEST`."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from epo_lab.algorithms import SAC
from epo_lab.base.errors import UserError
from epo_lab.diagnostics.agents import agent_settings
from epo_lab.diagnostics.smooth import SmoothEnv
from epo_lab.models.members import StackedPolicies, write_row
from epo_lab.population.es import EsCfg, EvolutionStrategy
from epo_lab.runner.runner import EpoRunner
from epo_lab.storage.replay import Replay

OBS, ACTIONS = 17, 6
"""Sizes of HalfCheetah."""
LARGEST = {
    "SAC gradient step / Stable-Baselines3's": 0.8,
    "replay: 4,096 transitions, n = 3 / gradient step": 0.1,
    "ES: generation of 50, net 64-64, together / one by one": 0.5,
    "replay: bytes / numbers that it stores": 1.05,
    "resumed with a replay.pt of 1 GB [s]": 10.0,
}
"""What is measured, and the most that we accept."""
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
    """Print a row a measure: median, least and largest; return 1 if a median is above what we accept."""
    torch.set_num_threads(1)
    measures: list[Callable[[argparse.Namespace], Iterator[float]]] = [_sb3, _sample, _generation, _bytes, _resume]
    too_much = False
    for (name, most), measure in zip(LARGEST.items(), measures, strict=True):
        values = sorted(measure(args))
        if not values:
            print(f"{name}: not measured, --sb3 PYTHON names an environment that has it")
            continue
        median = statistics.median(values)
        too_much |= median > most
        verdict = "ok" if median <= most else "TOO MUCH"
        print(f"{name}: {median:.3f} ({values[0]:.3f} to {values[-1]:.3f})  at most {most}  {verdict}", flush=True)
    return int(too_much)


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


def _milliseconds(function: Callable[[], object], steps: int = STEPS) -> float:
    """Return the processor's time of a call, so that others on the machine do not count."""
    begin = time.process_time()
    for _ in range(steps):
        function()
    return (time.process_time() - begin) / steps * 1e3


def _sb3(args: argparse.Namespace) -> Iterator[float]:
    """Yield our time of a gradient step over Stable-Baselines3's, measured in turns."""
    if not args.sb3:
        return
    algorithm = make(args.width, args.batch_size)
    script = Path(__file__).with_name("sb3_sac.py")
    numbers = map(str, (OBS, ACTIONS, args.width, args.batch_size, STEPS, args.repeats))
    try:
        theirs = subprocess.Popen([args.sb3, str(script), *numbers], stdin=-1, stdout=-1, stderr=-3, text=True)
        assert theirs.stdin is not None and theirs.stdout is not None
        for _ in range(args.repeats):
            ours = _milliseconds(algorithm.gradient_step)
            print("", file=theirs.stdin, flush=True)
            other = json.loads(theirs.stdout.readline())
            print(f"  2 x {args.width}, batch {args.batch_size}: {ours:.2f} ms, Stable-Baselines3 {other:.2f} ms")
            yield ours / other
    except (OSError, ValueError):
        raise UserError(f"--sb3 {args.sb3} has no Stable-Baselines3: uv pip install stable-baselines3 there") from None


def _sample(args: argparse.Namespace) -> Iterator[float]:
    """Yield the time of drawing a batch over that of learning from one of its size."""
    algorithm = make(args.width, 4096)
    for _ in range(args.repeats):
        step = _milliseconds(algorithm.gradient_step, 3)
        yield _milliseconds(lambda: algorithm.replay.sample(4096, 3, 0.99)) / step


def _generation(args: argparse.Namespace) -> Iterator[float]:
    """Yield the time of a generation of episodes, all members in one vector over one after the other in one."""
    members, steps = 50, 64
    actor = EpoRunner(SmoothEnv(members), _settings(hidden_dims=[64, 64])).alg.actor
    policies = StackedPolicies(actor, members, torch.arange(members))
    parameters = [*actor.parameters()]
    strategy = EvolutionStrategy(EsCfg(), policies.rows[0], policies.shapes, members)

    def play(env: SmoothEnv, policy: Callable[[Any], torch.Tensor]) -> torch.Tensor:
        obs, total = env.get_observations(), torch.zeros(env.num_envs)
        for _ in range(steps):
            obs, rewards, _, _ = env.step(policy(obs))
            total += rewards
        return total

    def together(env: SmoothEnv = SmoothEnv(members)) -> None:
        policies.rows.copy_(strategy.ask())
        strategy.tell(play(env, policies))

    def one_by_one(env: SmoothEnv = SmoothEnv(1)) -> None:
        returns = []
        for row in strategy.ask():
            write_row(row, parameters)
            returns.append(play(env, actor))
        strategy.tell(torch.cat(returns))

    with torch.inference_mode():
        for _ in range(args.repeats):
            yield _milliseconds(together, 3) / _milliseconds(one_by_one, 1)


def _bytes(args: argparse.Namespace) -> Iterator[float]:
    """Yield the size of a ring over that of observations, actions, rewards and ends, each stored once."""
    capacity = 10_000_000
    ring = Replay(TensorDict({"policy": torch.zeros(4096, OBS)}, [4096]), ACTIONS, capacity, 1000)
    yield ring.num_bytes / (capacity * (4 * (OBS + ACTIONS + 1) + 1))


def _resume(args: argparse.Namespace) -> Iterator[float]:
    """Yield the seconds by the clock in which a run with a full replay of 1 GB goes on."""
    num_envs, slot = 1024, 37  # bytes of a transition
    cfg = _settings(replay={"size": 10**9 // slot, "save": True})
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        runner = EpoRunner(SmoothEnv(num_envs), cfg, log_dir=folder)
        replay = runner.alg.replay
        runner.alg.train_mode()
        replay.size, replay.head = replay.rows - 1, 0
        runner.save(f"{folder}/model_0.pt")
        size = Path(folder, "replay.pt").stat().st_size
        del replay, runner
        begin = time.perf_counter()
        EpoRunner(SmoothEnv(num_envs), cfg, log_dir=folder).resume(f"{folder}/model_0.pt")
        seconds = time.perf_counter() - begin
    print(f"  replay.pt: {size / 1e9:.2f} GB")
    yield seconds


def _settings(hidden_dims: list[int] | None = None, **algorithm: Any) -> dict[str, Any]:
    cfg = agent_settings("Epo-Diag-Smooth-v0", "sac")["agent"]
    cfg["actor"] = {**cfg["actor"], "hidden_dims": hidden_dims or cfg["actor"]["hidden_dims"]}
    cfg["algorithm"] |= algorithm
    return cfg
