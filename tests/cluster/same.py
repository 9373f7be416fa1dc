"""Compare the last checkpoints and the lineages of two run folders, bit by bit: same.py RUN_A RUN_B"""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from epo_lab.runner.folder import checkpoints
from support.equality import assert_same

runs = [Path(name) for name in sys.argv[1:3]]
last = [checkpoints(run)[-1] for run in runs]
assert last[0].name == last[1].name, last
contents = [torch.load(path, weights_only=False) for path in last]
for content in contents:
    content["run"]["logger"].pop("seconds")
assert_same(*contents)
assert (runs[0] / "lineage.jsonl").read_text() == (runs[1] / "lineage.jsonl").read_text() != ""
starts = len((runs[1] / "command.txt").read_text().splitlines())
assert starts > 1, "the second run was never interrupted"
print(f"{runs[1].name}: {last[1].name} equals that of {runs[0].name}, after {starts} starts")
