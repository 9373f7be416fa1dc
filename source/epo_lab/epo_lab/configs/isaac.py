"""Isaac Lab configclasses of our agents. This is the one place of the package that needs Isaac Lab for a class."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import MISSING, fields
from functools import partial
from typing import Any

from isaaclab.utils import configclass
from isaaclab_rl.rsl_rl import (
    RslRlMLPModelCfg,
    RslRlOnPolicyRunnerCfg,
    RslRlPpoAlgorithmCfg,
    RslRlRNNModelCfg,
    check_rsl_rl_version,
    handle_deprecated_rsl_rl_cfg,
)
from isaaclab_tasks.utils.hydra import PresetCfg, collect_presets, preset, resolve_presets

from epo_lab.algorithms import registry
from epo_lab.algorithms.on_policy.options import EpoOptions
from epo_lab.base.device import default_device, usable
from epo_lab.base.errors import UserError
from epo_lab.base.options import assign, merge
from epo_lab.population.fitness import SUCCESS_OR_RETURN
from epo_lab.population.genetics import EvolutionOptions
from epo_lab.population.pbt import PbtOptions

from .presets import ITERATIONS, agent_preset, same_length
from .sizes import DEFAULT, SIZES, at_size, size


@configclass
class EpoAlgorithmCfg(RslRlPpoAlgorithmCfg, EpoOptions):
    """rsl_rl's PPO settings and ours (:class:`~epo_lab.algorithms.on_policy.options.EpoOptions`)."""

    class_name: str = "epo_lab.algorithms:EPO"


def algorithm_cfg(class_path: str) -> type[RslRlPpoAlgorithmCfg]:
    """Return the configclass of an algorithm: its options in the table, and rsl_rl's PPO settings if it is a PPO."""
    row = registry.ALGORITHMS[class_path]
    name = class_path.rpartition(":")[2].capitalize() + "AlgorithmCfg"
    bases = (RslRlPpoAlgorithmCfg, row.options) if row.is_ppo else (row.options,)
    fields_ = {"__annotations__": {"class_name": str}, "class_name": class_path}
    return configclass(type(name, bases, fields_))


@configclass
class EpoRunnerCfg(RslRlOnPolicyRunnerCfg):
    """rsl_rl's runner settings and those of :class:`~epo_lab.runner.runner.EpoRunner`.

    ``class_name`` stays rsl_rl's, so that Isaac Lab's own commands accept the config.
    """

    device: str = default_device()
    """Device of the networks. Default: the first GPU if there is one, else the CPU."""

    keep_checkpoints: int = 0
    """How many of the newest numbered checkpoints are kept. Default 0: all."""

    save_physics: bool = False
    """Whether the newest checkpoint has the state of the simulation beside it, in ``physics.pt``, so that a resumed run
    goes on in the middle of its episodes. Default False: files grow, and a resumed run begins new episodes."""

    guard_limit: int = 20
    """Iterations in a row with non-finite or huge environments after which the run stops. Default 20."""

    guard_bound: float = 1e6
    """Largest absolute value of an observation or reward; an environment beyond it is reset. Default 1e6."""

    check_for_nan: bool = False
    """Whether rsl_rl raises at the first non-finite number. Default False: the guard of the runner handles them."""


@configclass
class LatentMlpModelCfg(RslRlMLPModelCfg):
    """rsl_rl's MLP, with bounds for its input."""

    obs_clip: float | None = None
    """Largest absolute value of a normalised observation. Default None: any."""


@configclass
class LatentRnnModelCfg(RslRlRNNModelCfg):
    """rsl_rl's recurrent model, with bounds for its input and a layer norm behind the recurrent layer."""

    obs_clip: float | None = None
    """Largest absolute value of a normalised observation. Default None: any."""

    rnn_layer_norm: bool = True
    """Whether the recurrent output is layer-normalised. Default True."""


def with_preset(
    base: Callable[[], RslRlOnPolicyRunnerCfg],
    name: str,
    experiment_name: str | None = None,
    algorithm: dict[str, Any] | None = None,
    by_agent: dict[str, dict[str, Any]] | None = None,
) -> RslRlOnPolicyRunnerCfg:
    """Return a task's PPO config turned into another agent's.

    Args:
        base: Makes the config of the task's PPO agent, such as its class.
        name: Name of the preset.
        experiment_name: Folder of the task's runs. Defaults to None: the base's.
        algorithm: More settings of the algorithm for this task, for populations.
        by_agent: More settings of the algorithm for this task, by the name of the preset they belong to.
    """
    cfg = base()
    cfg.experiment_name = experiment_name or cfg.experiment_name
    preset = agent_preset(name)
    settings = {"class_name": registry.EPO, **preset["algorithm"]}
    common = algorithm or {} if at_size(settings, DEFAULT).get("num_agents", 1) > 1 else {}
    row = registry.find(settings)
    if not row.is_ppo and row.options is not None:
        # what is said of all populations is mostly said of the genes of EPO
        known = {field.name for field in fields(row.options)}
        common = {key: value for key, value in common.items() if key in known}
    changes = merge(preset, {"algorithm": merge(settings, common, (by_agent or {}).get(name, {}))})

    sized = {name: _at(name, base, changes) for name in SIZES}
    for key in [*changes, *ITERATIONS]:
        values = {name: getattr(made, key) for name, made in sized.items()}
        setattr(cfg, key, size(values.pop(DEFAULT), **values))
    return cfg


def for_any_task(base: Callable[[], Any], name: str) -> Any:
    """Return a PPO config that knows nothing of us turned into another agent's; one for each of its own presets.

    Networks, observations, learning rate, roll-outs and length are the task's. Populations are ranked by the success
    rate if the task logs one, else by the return.

    Args:
        base: Makes the config of the task's PPO agent.
        name: Name of the preset.
    """
    cfg = base()
    if isinstance(cfg, PresetCfg):
        choices = collect_presets(cfg)[""]
        made = {option: for_any_task(partial(deepcopy, choice), name) for option, choice in choices.items()}
        return preset(**made)
    if not isinstance(getattr(cfg, "algorithm", None), RslRlPpoAlgorithmCfg | PresetCfg):
        raise UserError(f"agent '{name}' is made from a task's PPO config, and {type(cfg).__name__} is none")
    plain = _modern(resolve_presets(base(), ()))
    steps = plain.num_steps_per_env * plain.max_iterations
    common = {"fitness": {"source": SUCCESS_OR_RETURN}, **_evolution_pace(steps)}
    made = with_preset(base, name, algorithm=common, by_agent={"pbt": _pbt_pace(steps)})
    # rsl_rl's default is a GPU, and --device of Isaac Lab's own commands is the environments' alone
    made.device = usable(made.device)
    return made


def _evolution_pace(steps: int) -> dict[str, Any]:
    """Return when generations happen in a run of so many control steps: from a quarter on, ten times a quarter."""
    usual = EvolutionOptions()
    share = min(1.0, steps / (4 * usual.warmup_steps))
    names = ("warmup_steps", "interval_steps")
    return {"evolution": {name: max(1, round(share * getattr(usual, name))) for name in names}}


def _pbt_pace(steps: int) -> dict[str, Any]:
    """Return when PBT changes policies in a run of so many control steps: from a quarter on."""
    usual = PbtOptions()
    share = min(1.0, steps / (4 * usual.initial_delay_steps))
    names = ("interval_steps", "start_after_steps", "initial_delay_steps")
    return {"pbt": {name: max(1, round(share * getattr(usual, name))) for name in names}}


def _modern(cfg: RslRlOnPolicyRunnerCfg) -> RslRlOnPolicyRunnerCfg:
    """Return a config with a model each for actor and critic; older projects have one ``policy`` for both."""
    # Note: a copied config has copies of the sentinel
    if isinstance(getattr(cfg, "policy", MISSING), type(MISSING)):
        return cfg
    cfg = handle_deprecated_rsl_rl_cfg(cfg, check_rsl_rl_version())
    for model in (cfg.actor, cfg.critic):
        # removed just now, and looked at once more when the run starts
        model.stochastic = MISSING
    return cfg


def _at(
    size_name: str, base: Callable[[], RslRlOnPolicyRunnerCfg], changes: dict[str, dict[str, Any]]
) -> RslRlOnPolicyRunnerCfg:
    """Return a task's PPO config of a size with a preset's changes; a run has as many steps of the environment."""
    made: Any = _modern(resolve_presets(base(), (size_name,)))
    own = at_size(changes, size_name)
    row = registry.find(own["algorithm"])
    plain = {field.name: getattr(made.algorithm, field.name) for field in fields(made.algorithm)}
    kind = algorithm_cfg(own["algorithm"]["class_name"])
    # what only a task's own variant of PPO knows is left out
    known = {field.name for field in fields(kind)} - {"class_name"}
    kept = [name for name in plain if name in known] if row.is_ppo else row.inherits
    made.algorithm = kind(**{name: plain[name] for name in kept})
    lengths = same_length(made.num_steps_per_env, own.get("num_steps_per_env", made.num_steps_per_env))
    assign(made, {name: lengths(getattr(made, name)) for name in ITERATIONS} | own)
    return made
