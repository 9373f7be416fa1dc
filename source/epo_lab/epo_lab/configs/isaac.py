"""Isaac Lab configclasses of our agents. This is the one place of the package that needs Isaac Lab for a class."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from isaaclab.utils import configclass
from isaaclab_rl.rsl_rl import RslRlMLPModelCfg, RslRlOnPolicyRunnerCfg, RslRlPpoAlgorithmCfg, RslRlRNNModelCfg
from isaaclab_tasks.utils.hydra import resolve_presets

from epo_lab.algorithms import registry
from epo_lab.algorithms.on_policy.options import EpoOptions
from epo_lab.base.device import default_device
from epo_lab.base.options import assign, merge

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

    guard_limit: int = 20
    """Iterations in a row with non-finite environments after which the run stops. Default 20."""

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
    base: type[RslRlOnPolicyRunnerCfg],
    name: str,
    experiment_name: str | None = None,
    algorithm: dict[str, Any] | None = None,
    by_agent: dict[str, dict[str, Any]] | None = None,
) -> RslRlOnPolicyRunnerCfg:
    """Return a task's PPO config turned into another agent's.

    Args:
        base: Config class of the task's PPO agent.
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


def _at(
    size_name: str, base: type[RslRlOnPolicyRunnerCfg], changes: dict[str, dict[str, Any]]
) -> RslRlOnPolicyRunnerCfg:
    """Return a task's PPO config of a size with a preset's changes; a run has as many steps of the environment."""
    made: Any = resolve_presets(base(), (size_name,))
    own = at_size(changes, size_name)
    row = registry.find(own["algorithm"])
    plain = {field.name: getattr(made.algorithm, field.name) for field in fields(made.algorithm)}
    kept = [name for name in plain if name != "class_name"] if row.is_ppo else row.inherits
    made.algorithm = algorithm_cfg(own["algorithm"]["class_name"])(**{name: plain[name] for name in kept})
    lengths = same_length(made.num_steps_per_env, own.get("num_steps_per_env", made.num_steps_per_env))
    assign(made, {name: lengths(getattr(made, name)) for name in ITERATIONS} | own)
    return made
