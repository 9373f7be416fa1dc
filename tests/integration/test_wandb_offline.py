"""W&B without a network: what a run logs is in the file that ``wandb sync`` would send."""

import json
import math
import os
import struct
import zlib
from collections import defaultdict

import pytest

from support.command import script

pytestmark = pytest.mark.integration

ITERATIONS = 14
TAGS = {
    "Master": ["return", "episode_length", "fitness"],
    "Population": ["return", "fitness_min", "fitness_median", "fitness_max", "gene_spread", "gene_distance"],
    "Generation": ["checks", "events", "fitness_spread", "threshold", "mean_age"],
    "Guard": ["reset_envs", "skipped_updates"],
    "Metrics": ["score"],
    "Train": ["mean_reward", "mean_episode_length"],
    "Loss": ["value", "surrogate", "entropy", "learning_rate"],
    "Policy": ["mean_std"],
    "Perf": ["total_steps", "total_fps", "collection_time", "learning_time"],
}
"""A few tags of every kind; from rsl_rl's ``Train`` on they are its own."""
EVERY_ITERATION = ["kl_to_master", "is_deviation", "effective_sample_size", "clip_fraction_relabelled"]
NOW_AND_THEN = ["kl_pairwise", "kl_pairwise_max", "kl_to_master_max", "nearest_is_master", "gradient_cosine"]


BLOCK, HEADER, PIECE = 32768, 7, 7
"""Sizes of the format [bytes]: a block, the file's header, and the header of a piece of a record."""


def records(content):
    """Yield the records of a ``.wandb`` file: LevelDB's log format, pieces of (crc32, length, type) and data."""
    assert content[:4] == b":W&B"
    at, whole = HEADER, b""
    while at + PIECE <= len(content):
        left = BLOCK - at % BLOCK
        if left < PIECE:
            at += left
            continue
        crc, length, kind = struct.unpack_from("<IHB", content, at)
        data = content[at + PIECE : at + PIECE + length]
        assert zlib.crc32(data, zlib.crc32(bytes([kind]))) == crc
        whole, at = whole + data, at + PIECE + length
        if kind in (1, 4):  # a whole record, or the last piece of one
            yield whole
            whole = b""


def read(path):
    """Return the logged values by tag, each with its step, and the stored settings."""
    from wandb.proto.wandb_internal_pb2 import Record

    history, config = defaultdict(dict), {}
    for data in records(path.read_bytes()):
        record = Record()
        record.ParseFromString(data)
        row = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for tag in row.keys() - {"_step", "_timestamp", "_runtime"}:
            history[tag][row["_step"]] = row[tag]
        for update in (*record.config.update, *record.run.config.update):
            config[update.key or "/".join(update.nested_key)] = json.loads(update.value_json)
    return history, config


def test_everything_is_in_the_file_that_is_synced_later(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WANDB_MODE", "offline")
    options = ["--num_envs", "64", "--max_iterations", str(ITERATIONS), "--log_project_name", "mine"]
    result = script("train", "--task", "Epo-Diag-Deceptive-v0", *options, "--logger", "wandb", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    (run,) = (tmp_path / "logs/rsl_rl/diag_deceptive").iterdir()
    (file,) = run.glob("wandb/offline-run-*/run-*.wandb")
    history, config = read(file)
    for kind, names in TAGS.items():
        for name in names:
            values = history[f"{kind}/{name}"]
            assert values, f"{kind}/{name} is missing"
            assert all(math.isfinite(value) for value in values.values()), f"{kind}/{name}"
    for name in EVERY_ITERATION:
        assert sorted(history[f"Population/{name}"]) == list(range(ITERATIONS))
    for name in NOW_AND_THEN:
        assert [math.isfinite(value) for value in history[f"Population/{name}"].values()] == [True]
    header, *lines = (run / "curves.csv").read_text().splitlines()
    last = dict(zip(header.split(","), lines[-1].split(","), strict=True))
    assert {tag for tag in header.split(",") if "/" in tag} == history.keys()
    assert history["Perf/total_steps"][ITERATIONS - 1] == 64 * 16 * ITERATIONS == int(last["Perf/total_steps"])
    assert config["train_cfg"]["algorithm"]["num_agents"] == 8
    assert config["env_cfg"]["num_envs"] == 64
