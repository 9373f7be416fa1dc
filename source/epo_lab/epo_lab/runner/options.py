"""What the settings of a runner and its networks may be; rsl_rl itself checks nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from epo_lab.base.errors import UserError
from epo_lab.base.options import FILLED, POSITIVE, Count, Positive, Whole, build, one_of, split


@dataclass
class RunnerOptions:
    """Settings of a run that are neither its algorithm's nor its networks'."""

    seed: Count = 0
    max_iterations: Whole = 1
    num_steps_per_env: Whole = 24
    save_interval: Whole = 50
    keep_checkpoints: Count = 0
    save_physics: bool = False
    guard_limit: Whole = 20
    guard_bound: Positive = 1e6
    check_for_nan: bool = False
    init_at_random_ep_len: bool = True
    clip_actions: Annotated[float | None, POSITIVE] = None
    experiment_name: str = ""
    run_name: str = ""
    device: str = "cpu"
    obs_groups: dict[str, Annotated[tuple[str, ...], FILLED]] = field(default_factory=dict)
    torch_compile_mode: str | None = None


@dataclass
class DistributionOptions:
    """Settings of the noise on actions."""

    init_std: Positive = 1.0
    std_type: Annotated[str, one_of(("scalar", "log"))] = "scalar"


@dataclass
class NetworkOptions:
    """Settings of a network."""

    hidden_dims: Annotated[tuple[Whole, ...], FILLED] = (1,)
    obs_normalization: bool = False
    obs_clip: Annotated[float | None, POSITIVE] = None
    rnn_type: Annotated[str, one_of(("lstm", "gru"))] = "lstm"
    rnn_hidden_dim: Whole = 256
    rnn_num_layers: Whole = 1
    rnn_layer_norm: bool = False


def check_runner(settings: dict[str, Any]) -> None:
    """Raise a :class:`UserError` if a setting outside of the algorithm is of another type or out of range."""
    _check(RunnerOptions, settings, "agent")
    check_class(settings["algorithm"], "agent.algorithm")
    for name in ("actor", "critic"):
        check_network(settings.get(name) or {}, f"agent.{name}")


def check_network(settings: dict[str, Any], path: str) -> None:
    """Raise a :class:`UserError` if a network cannot be built.

    Args:
        settings: Settings of the model.
        path: Where they stand, for the message.
    """
    from rsl_rl.utils import resolve_nn_activation

    if not isinstance(settings, dict):
        raise UserError(f"{path} is a group of settings: set one of them, such as {path}.activation")
    try:
        resolve_nn_activation(settings.get("activation", "elu"))
    except (ValueError, TypeError, AttributeError) as error:
        raise UserError(f"{path}.activation: {error}") from None
    _check(NetworkOptions, settings, path)
    check_class(settings, path)
    noise = settings.get("distribution_cfg") or {}
    if not isinstance(noise, dict):
        raise UserError(f"{path}.distribution_cfg is a group of settings: set one of them, such as init_std")
    _check(DistributionOptions, noise, f"{path}.distribution_cfg")
    check_class(noise, f"{path}.distribution_cfg")


def check_class(settings: dict[str, Any], path: str) -> None:
    """Raise a :class:`UserError` if the class that settings name does not exist."""
    from rsl_rl.utils import resolve_callable

    try:
        resolve_callable(settings.get("class_name", "MLPModel"))
    except Exception as error:  # whatever the import of somebody's module leads to
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path}.class_name '{settings['class_name']}' cannot be found: {reason}") from None


def _check(kind: type, settings: dict[str, Any], path: str) -> None:
    build(kind, split(kind, settings)[0], path)
