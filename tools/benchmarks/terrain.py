"""Measure what the parkour field costs: to build, to hold, and to look up heights in it."""

from __future__ import annotations

import argparse
import resource
import time

from epo_lab.commands.tasks import load_tasks

RAYS = 132
"""Heights that a robot looks at."""


def benchmark_terrain(args: argparse.Namespace) -> int:
    """Build the field and print seconds and memory; compare looking heights up with casting rays."""
    load_tasks()
    from epo_tasks.parkour.terrain.generator import ParkourTerrainGenerator
    from epo_tasks.parkour.terrain.terrain_cfg import ParkourTerrainGeneratorCfg

    before = _memory_mb()
    begin = time.perf_counter()
    field = ParkourTerrainGenerator(ParkourTerrainGeneratorCfg(num_cols=args.columns, horizontal_scale=args.grid))
    took = time.perf_counter() - begin
    faces, memory = len(field.terrain_mesh.faces), _memory_mb() - before
    print(f"{args.columns} columns, grid {args.grid} m: {took:.1f} s, {faces} triangles, {memory:.0f} MB at most")
    lookup, rays = _compare(field, args.num_envs)
    print(f"heights of {args.num_envs} robots: {lookup * 1e3:.2f} ms looked up, {rays * 1e3:.2f} ms with rays")
    return 0


def _compare(field, num_envs: int, repeats: int = 20) -> tuple[float, float]:
    """Return the seconds that the heights below random points take, looked up and with rays."""
    import torch
    from isaaclab.utils.warp import convert_to_warp_mesh, raycast_mesh

    extent = 0.5 * field.cfg.horizontal_scale * torch.tensor(field.height_field.heights.shape)
    points = (2.0 * torch.rand(num_envs * RAYS, 2) - 1.0) * extent
    starts = torch.cat([points, torch.full((len(points), 1), 20.0)], dim=-1)
    down = torch.tensor([0.0, 0.0, -1.0]).expand_as(starts).contiguous()
    mesh = convert_to_warp_mesh(field.terrain_mesh.vertices, field.terrain_mesh.faces, device="cpu")
    seconds = []
    for look in (lambda: field.height_field.surface(points), lambda: raycast_mesh(starts, down, mesh)):
        look()
        begin = time.perf_counter()
        for _ in range(repeats):
            look()
        seconds.append((time.perf_counter() - begin) / repeats)
    return seconds[0], seconds[1]


def _memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
