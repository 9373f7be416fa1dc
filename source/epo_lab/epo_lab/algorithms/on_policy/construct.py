"""Build an EPO algorithm from the settings of an rsl_rl runner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from rsl_rl.env import VecEnv
from rsl_rl.extensions import resolve_rnd_config, resolve_symmetry_config
from rsl_rl.storage import RolloutStorage
from rsl_rl.utils import resolve_class, resolve_obs_groups
from tensordict import TensorDict
from torch import nn

from epo_lab.base.errors import UserError
from epo_lab.base.keys import AGENT_ID
from epo_lab.models.distribution import AgentGaussianDistribution
from epo_lab.models.latent import LatentMLPModel, LatentRNNModel
from epo_lab.population.assignment import assign_agents
from epo_lab.storage.rollout import PopulationStorage, SingleStorage

from .options import EpoOptions, default_num_agents, split_options
from .relabel import num_relabelled

if TYPE_CHECKING:
    from .epo import EPO

LATENT_MODELS = {"MLPModel": LatentMLPModel, "RNNModel": LatentRNNModel}
"""Our models in the place of rsl_rl's; they are the same without genes."""


def construct(obs: TensorDict, env: VecEnv, cfg: dict[str, Any], device: str) -> EPO:
    """Return the algorithm.

    Models named ``MLPModel`` or ``RNNModel`` become ours, so that a PPO config turns into an EPO config by its
    algorithm's class name alone.

    Args:
        obs: An observation of the environment.
        env: The environment.
        cfg: Settings of the runner.
        device: Device of the networks.
    """
    alg_class, settings = resolve_class(cfg["algorithm"])
    options, _ = split_options(settings)
    num_agents = options.num_agents or default_num_agents(env.num_envs)
    settings["num_agents"] = num_agents
    sets = ["actor", "critic"] + (["rnd_state"] if settings.get("rnd_cfg") else [])
    cfg["obs_groups"] = resolve_obs_groups(obs, cfg["obs_groups"], sets)
    settings = resolve_rnd_config(settings, obs, cfg["obs_groups"], env)
    settings = resolve_symmetry_config(settings, env)
    settings.pop("share_cnn_encoders", None)

    rank = (cfg.get("multi_gpu") or {}).get("global_rank", 0)
    # ranks share the population, whatever was added to their seeds
    seed = int(cfg.get("seed") or 0) - rank
    genes = None
    if num_agents > 1:
        generator = torch.Generator().manual_seed(seed)
        first = torch.randn(num_agents, options.genes.dim, generator=generator) * options.genes.init_std
        genes = nn.Parameter(first.to(device))
    actor_cfg, critic_cfg = dict(cfg["actor"]), dict(cfg["critic"])
    if num_agents > 1:
        spread = {**actor_cfg["distribution_cfg"], "class_name": AgentGaussianDistribution}
        actor_cfg["distribution_cfg"] = {**spread, "num_agents": num_agents}
    groups = cfg["obs_groups"]
    actor = _make_model(actor_cfg, genes, obs, groups, "actor", env.num_actions).to(device)
    moves = options.genes.gradient == "both"
    critic = _make_model(critic_cfg, genes, obs, groups, "critic", 1, owns_genes=False, moves_genes=moves).to(device)

    storage, ids = _make_storage(obs, env, cfg, device, num_agents, options, seed + rank)
    algorithm = alg_class(
        actor,
        critic,
        storage,
        agent_ids=ids,
        max_episode_length=int(torch.as_tensor(env.max_episode_length).max()),
        seed=seed,
        rank=rank,
        device=device,
        multi_gpu_cfg=cfg.get("multi_gpu"),
        **settings,
    )
    algorithm.compile(cfg.get("torch_compile_mode"))
    return algorithm


def _make_model(
    cfg: dict[str, Any],
    genes: nn.Parameter | None,
    obs: TensorDict,
    groups: dict,
    name: str,
    size: int,
    **table: bool,
) -> Any:
    model_class, settings = resolve_class(cfg)
    model_class = LATENT_MODELS.get(model_class.__name__, model_class)
    if not issubclass(model_class, LatentMLPModel | LatentRNNModel):
        raise UserError(f"{model_class.__name__} cannot take a gene: use MLPModel or RNNModel for the {name}")
    return model_class(obs, groups, name, size, genes=genes, **table, **settings)


def _make_storage(
    obs: TensorDict, env: VecEnv, cfg: dict[str, Any], device: str, num_agents: int, options: EpoOptions, seed: int
) -> tuple[RolloutStorage, torch.Tensor | None]:
    steps, shape = cfg["num_steps_per_env"], [env.num_actions]
    if num_agents == 1:
        return SingleStorage("rl", env.num_envs, steps, obs, shape, device), None
    division = {"allow_uneven": options.allow_uneven, "master_share": options.master_share}
    try:
        ids = assign_agents(env.num_envs, num_agents, seed, **division)
        extra = num_relabelled(ids, num_agents, options.off_policy.sampling, options.off_policy.ratio)
    except UserError:
        # a few environments are enough to play the master; training checks this again
        ids, extra = torch.zeros(env.num_envs, dtype=torch.long), 0
    labelled = obs.clone(recurse=False)
    labelled[AGENT_ID] = ids.unsqueeze(-1).to(device)
    keep_all = options.off_policy.hidden == "stored"
    weighted = options.off_policy.clip == "mu"
    return PopulationStorage(env.num_envs, steps, extra, ids, labelled, shape, device, keep_all, weighted), ids
