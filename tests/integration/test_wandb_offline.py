"""W&B without a network: what a run logs is in the file that ``wandb sync`` would send."""

import json
import math
import os
from collections import defaultdict

import pytest
from PIL import Image

from support.command import script
from support.wandb_file import named, records

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
OPTIONS = ["--log_project_name", "mine", "--wandb_entity", "us", "--wandb_group", "four", "--wandb_tags", "a,b"]
OPTIONS += ["--wandb_mode", "offline", "agent.algorithm.num_agents=8"]
# a generation at every check, and checks as soon as all agents can be judged
OPTIONS += ["agent.algorithm.evolution.trigger=interval", "agent.algorithm.evolution.warmup_steps=96"]
LINEAGE, GENES = "Population/lineage", "Population/gene_map"
EVERY_ITERATION = ["kl_to_master", "is_deviation", "effective_sample_size", "clip_fraction_relabelled"]
NOW_AND_THEN = ["kl_pairwise", "kl_pairwise_max", "kl_to_master_max", "nearest_is_master", "gradient_cosine"]


def read(*paths):
    """Return the logged values by tag, each with its step, the stored settings, and the run's own record."""
    history, config, runs = defaultdict(dict), {}, []
    for record in (record for path in paths for record in records(path.read_bytes())):
        row = {named(item): json.loads(item.value_json) for item in record.history.item}
        for tag in row.keys() - {"_step", "_timestamp", "_runtime"}:
            history[tag][row["_step"]] = row[tag]
        for update in (*record.config.update, *record.run.config.update):
            config[named(update)] = json.loads(update.value_json)
        if record.WhichOneof("record_type") == "run":
            runs.append(record.run)
    return history, config, runs


def train(folder, iterations, *options):
    size = ["--num_envs", "64", "--max_iterations", str(iterations)]
    result = script("train", "--task", "Epo-Diag-Deceptive-v0", *size, "--logger", "wandb", *options, cwd=folder)
    assert result.returncode == 0, result.stderr
    (run,) = (folder / "logs/rsl_rl/diag_deceptive").iterdir()
    return run, sorted(run.glob("wandb/offline-run-*/run-*.wandb"))


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A run without a network; W&B's own variables choose nothing."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("WANDB_")]:
            patch.delenv(name)
        folder = tmp_path_factory.mktemp("user")
        return folder, *train(folder, ITERATIONS, *OPTIONS)


def test_everything_is_in_the_file_that_is_synced_later(first):
    _, run, (file, *_) = first
    history, config, (record, *_) = read(file)
    assert (record.project, record.entity, record.run_group, list(record.tags)) == ("mine", "us", "four", ["a", "b"])
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
    assert {tag for tag in header.split(",") if "/" in tag} == {
        tag for tag in history if not tag.startswith((LINEAGE, GENES))
    }
    assert history["Perf/total_steps"][ITERATIONS - 1] == 64 * 16 * ITERATIONS == int(last["Perf/total_steps"])
    assert config["train_cfg"]["algorithm"]["num_agents"] == 8
    assert config["env_cfg"]["num_envs"] == 64


def test_a_resumed_run_is_the_same_wandb_run(first):
    run, files = train(first[0], 2 * ITERATIONS, *OPTIONS, "--resume")
    assert len(files) == 2
    history, _, runs = read(*files)
    assert {record.run_id for record in runs} == {(run / "wandb_id.txt").read_text().strip()}
    steps = history["Perf/total_steps"]
    assert sorted(steps) == list(range(2 * ITERATIONS)), "the second part goes on where the first ended"
    assert steps[2 * ITERATIONS - 1] == 64 * 16 * 2 * ITERATIONS

    generations = [json.loads(line) for line in (run / "lineage.jsonl").read_text().splitlines()]
    born = [child["id"] for generation in generations for child in generation["children"]]
    table = json.loads(next(run.glob(f"wandb/*/files/{_last(history[f'{LINEAGE}/path'])}")).read_text())
    assert born and [row[table["columns"].index("gene")] for row in table["data"]] == born
    with Image.open(next(run.glob(f"wandb/*/files/{_last(history[f'{GENES}/path'])}"))) as picture:
        assert len(picture.convert("RGB").getcolors(1 << 20)) > 20, "there is something on it"


def _last(values):
    return values[max(values)]


def test_wandb_options_need_wandb(refuse):
    task = ["--task", "Epo-Diag-Deceptive-v0"]
    refuse("train", *task, "--wandb_group", "four", says="--wandb_group needs --logger wandb")
