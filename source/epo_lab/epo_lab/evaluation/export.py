"""Write a policy as files that run without this package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def export_policy(model: Any, stem: Path, facts: Mapping[str, Any] | None = None) -> tuple[Path, Path]:
    """Write a model for plain observations as JIT and ONNX, and return the two files.

    Args:
        model: A model of rsl_rl's; a gene that it carries is folded in.
        stem: Path of the files without their endings.
        facts: What a robot must know to use it; the ONNX file carries it as metadata, each as JSON. Defaults to None.
    """
    import onnx
    import torch

    stem.parent.mkdir(parents=True, exist_ok=True)
    jit_path, onnx_path = stem.with_suffix(".pt"), stem.with_suffix(".onnx")
    torch.jit.script(model.as_jit().to("cpu")).save(str(jit_path))

    exported = model.as_onnx(verbose=False).to("cpu").eval()
    names = [*exported.input_names, *exported.output_names]
    torch.onnx.export(
        exported,
        exported.get_dummy_inputs(),
        str(onnx_path),
        opset_version=18,
        input_names=exported.input_names,
        output_names=exported.output_names,
        # recurrent states have layers before the batch
        dynamic_axes={name: {0 if name in ("obs", "actions") else 1: "batch"} for name in names},
        dynamo=False,
    )
    content = onnx.load(str(onnx_path))
    onnx.helper.set_model_props(content, {name: json.dumps(value) for name, value in (facts or {}).items()})
    onnx.save(content, str(onnx_path))
    return jit_path, onnx_path


def describe(env: Any, groups: list[str]) -> dict[str, Any]:
    """Return what a robot must know to use a policy: its rate, observations in their order, joints, and scales.

    Args:
        env: The environment; one without Isaac Lab's managers tells its rate only, if it has one.
        groups: Observation groups of the policy, in its order.
    """
    facts: dict[str, Any] = {"step_dt": float(env.step_dt)} if hasattr(env, "step_dt") else {}
    if hasattr(env, "observation_manager"):
        facts["observations"] = [
            term for group in groups for term in _observation_terms(env.observation_manager, group)
        ]
    if hasattr(env, "action_manager"):
        manager = env.action_manager
        facts["actions"] = [_action_term(name, manager.get_term(name)) for name in manager.active_terms]
    return facts


def _observation_terms(manager: Any, group: str) -> list[dict[str, Any]]:
    names, sizes = manager.active_terms[group], manager.group_obs_term_dim[group]
    group_cfg = getattr(manager.cfg, group)
    return [
        {"name": name, "size": _count(size), "scale": _plain(getattr(getattr(group_cfg, name), "scale", None))}
        for name, size in zip(names, sizes, strict=True)
    ]


def _action_term(name: str, term: Any) -> dict[str, Any]:
    cfg = term.cfg
    return {
        "name": name,
        "size": int(term.action_dim),
        "joints": list(getattr(term, "_joint_names", [])),
        "scale": _plain(_in_use(term, "_scale", getattr(cfg, "scale", None))),
        "offset": _plain(_in_use(term, "_offset", getattr(cfg, "offset", None))),
        "clip": _plain(getattr(cfg, "clip", None)),
    }


def _in_use(term: Any, name: str, configured: Any) -> Any:
    """Return what Isaac Lab's term works with, such as the default pose, of the first environment; else the setting."""
    value = getattr(term, name, configured)
    return value[0] if getattr(value, "ndim", 0) == 2 else value


def _count(size: Any) -> int:
    count = 1
    for part in size if isinstance(size, tuple | list) else (size,):
        count *= int(part)
    return count


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value if isinstance(value, int | float | str | bool | None) else str(value)
