"""Keep environments with non-finite or huge numbers from poisoning everybody's update, and say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from epo_lab.base.errors import NonFiniteError
from epo_lab.base.files import replace_text
from epo_lab.base.keys import BROKEN, FINAL_OBS, TIME_OUTS

DUMP_NAME = "nonfinite.json"


class NonFiniteEnvError(NonFiniteError):
    """Environments gave non-finite or huge numbers in too many iterations in a row."""


class GuardedEnv(VecEnv):
    """Hands out finite numbers within a bound only: one that is huge spoils running means and variances for good.

    A step of an environment with another observation or reward becomes the end of its episode, with zeros in their
    place; so do all steps after it, until the iteration ends and broken environments are reset and counted. Nothing
    here waits for the device before.
    """

    def __init__(self, env: Any, limit: int = 20, bound: float = 1e6) -> None:
        """Wrap an environment.

        Args:
            env: The environment.
            limit: Iterations in a row with broken environments after which :meth:`end_iteration` raises.
            bound: Largest absolute value of an observation or a reward.
        """
        self._env, self._limit, self._bound = env, limit, bound
        self.num_envs, self.num_actions = env.num_envs, env.num_actions
        self.max_episode_length, self.device, self.cfg = env.max_episode_length, env.device, env.cfg
        self.reset_count = 0
        """Environments that were reset so far."""
        self._in_a_row = 0
        self._steps = 0
        self._bad = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        self._bad_reward = torch.zeros((), dtype=torch.bool, device=self.device)
        self._bad_dims: dict[str, torch.Tensor] = {}
        self._first_step = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)

    @property
    def unwrapped(self) -> Any:
        """The innermost environment."""
        return getattr(self._env, "unwrapped", self._env)

    @property
    def episode_length_buf(self) -> torch.Tensor:  # type: ignore[override]
        """Steps of the running episodes."""
        return self._env.episode_length_buf

    @episode_length_buf.setter
    def episode_length_buf(self, value: torch.Tensor) -> None:
        self._env.episode_length_buf = value

    def get_observations(self) -> TensorDict:
        """Return the current observations, zero where they are not finite or huge."""
        return self._finite(self._env.get_observations())

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Step the environments."""
        obs, rewards, dones, extras = self._env.step(actions)
        bad = self._broken(rewards)
        self._bad_reward |= bad.any()
        for name, value in obs.items():
            broken = self._broken(value)
            bad = bad | broken.flatten(1).any(dim=1)
            dims = broken.any(dim=0)
            self._bad_dims[name] = self._bad_dims[name] | dims if name in self._bad_dims else dims
        self._first_step = torch.where(bad & ~self._bad, self._steps, self._first_step)
        self._bad |= bad
        bad = self._bad.clone()
        self._steps += 1
        extras = {**extras, BROKEN: bad}
        if FINAL_OBS in extras:
            # who stores them leaves out what is not finite
            finals = {name: extras[FINAL_OBS][name] for name in extras[FINAL_OBS].keys()}  # noqa: SIM118 - a TensorDict
            extras[FINAL_OBS] = {name: _masked(value, self._broken(value)) for name, value in finals.items()}
        if TIME_OUTS in extras:
            extras[TIME_OUTS] = extras[TIME_OUTS].bool() & ~bad
        dones = torch.where(bad, torch.ones_like(dones), dones)
        return self._finite(obs), torch.where(bad, 0.0, rewards), dones, extras

    def end_iteration(self, iteration: int, folder: Path | None) -> bool:
        """Reset broken environments and return whether there were any.

        Raises, with a dump in ``folder``, if there were some too often in a row.
        """
        if not bool(self._bad.any()):
            self._in_a_row = 0
            return False
        envs = self._bad.nonzero().flatten()
        self.reset_count += len(envs)
        self._in_a_row += 1
        report = {
            "iteration": iteration,
            "iterations_in_a_row": self._in_a_row,
            "terms": self._terms(),
            "envs": [{"env": env, "step": int(self._first_step[env])} for env in envs.tolist()],
        }
        if self._in_a_row >= self._limit:
            where = "" if folder is None else f"; see {_write(report, folder)}"
            raise NonFiniteEnvError(
                f"environments gave numbers that are not finite or beyond agent.guard_bound={self._bound:g} in"
                f" {self._in_a_row} iterations in a row: first environment {report['envs'][0]['env']} at step"
                f" {report['envs'][0]['step']}, in {', '.join(report['terms'])}{where}"
            )
        self._reset(envs)
        self._bad.zero_()
        self._bad_reward.zero_()
        self._bad_dims = {}
        return True

    def _reset(self, envs: torch.Tensor) -> None:
        env = self.unwrapped
        with torch.inference_mode():
            if hasattr(env, "reset_envs"):
                env.reset_envs(self._bad.clone())
            else:
                env.reset(env_ids=envs)

    def _terms(self) -> list[str]:
        """Return the names of the observation and reward terms that were not finite or huge."""
        env, terms = self.unwrapped, []
        for group, mask in self._bad_dims.items():
            dims = mask.nonzero().flatten().tolist() if mask.dim() == 1 else []
            names = _dimension_names(env, group)
            terms += dict.fromkeys(names[dim] if dim < len(names) else f"observation {group}[{dim}]" for dim in dims)
        if bool(self._bad_reward):
            manager = getattr(env, "reward_manager", None)
            rates = getattr(manager, "_step_reward", None)
            if manager is not None and rates is not None:
                broken = self._broken(rates[self._bad]).any(dim=0).nonzero().flatten().tolist()
                terms += [f"reward {manager.active_terms[index]}" for index in broken]
            else:
                terms.append("reward")
        return terms

    def _broken(self, values: torch.Tensor) -> torch.Tensor:
        """Return where values are not finite or huge; NaN is not below any bound."""
        if not values.is_floating_point():
            return torch.zeros_like(values, dtype=torch.bool)
        return ~(values.abs() <= self._bound)

    def _finite(self, obs: TensorDict) -> TensorDict:
        clean = {
            name: value.masked_fill(self._broken(value), 0.0)
            for name, value in obs.items()
            if isinstance(value, torch.Tensor) and value.is_floating_point()
        }
        return obs.clone(recurse=False).update(clean)


def _masked(values: torch.Tensor, broken: torch.Tensor) -> torch.Tensor:
    return values.masked_fill(broken, torch.nan) if values.is_floating_point() else values


def _dimension_names(env: Any, group: str) -> list[str]:
    """Return the term of every dimension of an observation group, if the environment has a manager that knows."""
    manager = getattr(env, "observation_manager", None)
    if manager is None or group not in manager.active_terms or not manager.group_obs_concatenate.get(group, False):
        return []
    names = []
    for term, shape in zip(manager.active_terms[group], manager.group_obs_term_dim[group], strict=True):
        names += [f"observation {group}/{term}"] * int(torch.tensor(shape).prod())
    return names


def _write(report: dict[str, Any], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / DUMP_NAME
    replace_text(path, json.dumps(report, indent=1) + "\n")
    return path
