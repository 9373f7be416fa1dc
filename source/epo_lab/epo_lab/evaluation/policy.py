"""The policies of a population, ready to act."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epo_lab.base.keys import AGENT_ID

if TYPE_CHECKING:
    import torch
    from tensordict import TensorDict


class Policy:
    """Deterministic actions of any agent of a population."""

    def __init__(self, runner: Any, num_agents: int, device: str) -> None:
        """Take the policy of a runner.

        Args:
            runner: The runner; the checkpoint is loaded.
            num_agents: Number of agents.
            device: Device of the observations.
        """
        self.runner = runner
        self.num_agents = num_agents
        self._device = device
        self._model = runner.get_inference_policy(device=device)

    def __call__(self, obs: TensorDict, agents: torch.Tensor) -> torch.Tensor:
        """Return the actions of the agents that play in each environment."""
        if self.num_agents > 1:
            obs = obs.clone(recurse=False)
            obs[AGENT_ID] = agents.to(self._device).unsqueeze(-1)
        return self._model(obs)

    def begin(self) -> None:
        """Forget all recurrent states."""
        self._model.reset()

    def reset(self, dones: torch.Tensor) -> None:
        """Forget the recurrent states of environments whose episode ended."""
        self._model.reset(dones)

    def export(self, folder: Path, members: Sequence[int] = (0,), task: str = "") -> list[str]:
        """Write members as JIT and ONNX files that take plain observations, and return the files' names.

        Args:
            folder: Where the files go.
            task: Id of the task, for the metadata. Defaults to none.
            members: Who is written; the master is ``policy``, another is ``policy_<number>``.
        """
        from .export import describe, export_policy

        env = self.runner.env.unwrapped
        facts = {"task": task} | describe(env, list(self._model.obs_groups))
        stems = {member: "policy" if member == 0 else f"policy_{member}" for member in members}
        files = [
            export_policy(self.runner.alg.policy(member), folder / stem, facts | {"member": member})
            for member, stem in stems.items()
        ]
        return [path.name for pair in files for path in pair]
