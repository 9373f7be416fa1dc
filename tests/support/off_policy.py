"""Small off-policy agents for tests."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def settings(name: str = "SAC", steps: int = 4, **algorithm: Any) -> dict[str, Any]:
    """Return the settings of a runner; ``algorithm`` goes to the algorithm."""
    network = {"class_name": "MLPModel", "hidden_dims": [16, 16], "activation": "relu", "obs_normalization": True}
    own = {
        "class_name": f"epo_lab.algorithms:{name}",
        "batch_size": 32,
        "warmup_steps": 128,
        "updates_per_step": 1.0,
        "replay": {"size": 2000},
        "critic": {"atoms": 21},
    }
    return {
        "seed": 1,
        "num_steps_per_env": steps,
        "save_interval": 1000,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": dict(network),
        "critic": dict(network),
        "algorithm": {**own, **algorithm},
        "multi_gpu": None,
    }


class NoWait(TorchDispatchMode):
    """Fails at every operation that would make the host wait for a GPU."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().split(".")[0]
        assert name not in ("aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select"), name
        if name in ("aten::index", "aten::index_put_"):
            assert not any(index is not None and index.dtype == torch.bool for index in args[1]), name
        return func(*args, **(kwargs or {}))
