"""Build an off-policy algorithm from the settings of an rsl_rl runner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from rsl_rl.env import VecEnv
from rsl_rl.utils import resolve_obs_groups
from tensordict import TensorDict

from epo_lab.base.errors import UserError
from epo_lab.base.options import build, without_class
from epo_lab.models.q_functions import QFunctions
from epo_lab.models.squashed import BoundedActor
from epo_lab.storage.replay import Replay

if TYPE_CHECKING:
    from .algorithm import OffPolicy

NETWORK = ("hidden_dims", "activation", "obs_normalization", "obs_clip")
"""Settings of a model that an off-policy network has too."""


def construct(kind: type[OffPolicy], obs: TensorDict, env: VecEnv, cfg: dict[str, Any], device: str) -> OffPolicy:
    """Return the algorithm; its replay takes no memory before training begins.

    Args:
        kind: Class of the algorithm.
        obs: An observation of the environment.
        env: The environment.
        cfg: Settings of the runner.
        device: Device of the networks.
    """
    # playing may have more environments than training, and needs no replay
    options = build(kind.options_class, without_class(cfg["algorithm"]))
    cfg["obs_groups"] = resolve_obs_groups(obs, cfg["obs_groups"], ["actor", "critic"])
    groups = cfg["obs_groups"]
    seen = list(dict.fromkeys([*groups["actor"], *groups["critic"]]))
    flat = [name for name in seen if obs[name].dim() != 2]
    if flat:
        raise UserError(f"observations '{flat[0]}' are no vectors: off-policy agents take vectors only")

    bounds = options.action_bounds if options.action_bounds is not None else cfg.get("clip_actions") or 1.0
    own = _network(cfg["actor"])
    actor = BoundedActor(
        obs,
        groups,
        "actor",
        env.num_actions,
        output=kind.output_class,
        output_settings={"bounds": bounds, **kind.output_settings(options)},
        **own,
    ).to(device)
    critic = QFunctions(
        obs,
        groups["critic"],
        env.num_actions,
        layer_norm=options.critic.layer_norm,
        num_atoms=options.critic.atoms,
        value_range=options.critic.value_range,
        **_network(cfg["critic"]),
    ).to(device)

    rank = (cfg.get("multi_gpu") or {}).get("global_rank", 0)
    seed = (int(cfg.get("seed") or 0) - rank) * 1000 + rank
    generator = torch.Generator(device).manual_seed(seed)
    replay = _replay(obs.select(*seen), env, options, cfg["num_steps_per_env"], device, seed)
    return kind(
        kind.learner_class(actor, critic, options, generator),
        replay,
        kind.make_exploration(options, env.num_envs, env.num_actions, generator),
        options,
        seed=seed,
        device=device,
        notes=_notes(cfg, own),
    )


def _network(model: dict[str, Any]) -> dict[str, Any]:
    return {name: model[name] for name in NETWORK if name in model}


def _replay(obs: TensorDict, env: VecEnv, options: Any, num_steps: int, device: str, seed: int) -> Replay:
    return Replay(
        obs,
        env.num_actions,
        max(options.replay.size, env.num_envs * max(num_steps, options.n_step)),
        int(torch.as_tensor(env.max_episode_length).max()),
        device="cpu" if options.replay.device == "host" else device,
        learner_device=device,
        dtype={"float32": torch.float32, "bfloat16": torch.bfloat16}[options.replay.dtype],
        seed=seed,
    )


def _notes(cfg: dict[str, Any], network: dict[str, Any]) -> tuple[str, ...]:
    """Return what a user should know: memory is left out."""
    if "rnn_type" not in cfg["actor"]:
        return ()
    net = "-".join(map(str, network["hidden_dims"]))
    kind = cfg["actor"]["rnn_type"].upper()
    return (f"off-policy agents have no memory: an MLP {net} takes the place of the task's {kind}",)
