"""Write a policy as files that run without this package."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def export_policy(model: Any, stem: Path) -> tuple[Path, Path]:
    """Write a model for plain observations as JIT and ONNX, and return the two files.

    Args:
        model: A model of rsl_rl's; a gene that it carries is folded in.
        stem: Path of the files without their endings.
    """
    import torch

    stem.parent.mkdir(parents=True, exist_ok=True)
    jit_path, onnx_path = stem.with_suffix(".pt"), stem.with_suffix(".onnx")
    torch.jit.script(model.as_jit().to("cpu")).save(str(jit_path))
    exported = model.as_onnx(verbose=False).to("cpu").eval()
    torch.onnx.export(
        exported,
        exported.get_dummy_inputs(),
        str(onnx_path),
        opset_version=18,
        input_names=exported.input_names,
        output_names=exported.output_names,
    )
    return jit_path, onnx_path
