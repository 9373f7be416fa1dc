"""Small problems with known optima, on which an algorithm shows within minutes whether it works.

They need no Isaac Lab and make hundreds of thousands of steps a second on a CPU core.
"""

import gymnasium as gym

TASKS = {
    "Epo-Diag-Smooth-v0": "epo_lab.diagnostics.smooth:SmoothEnv",
    "Epo-Diag-Deceptive-v0": "epo_lab.diagnostics.deceptive:DeceptiveEnv",
    "Epo-Diag-Cycle-v0": "epo_lab.diagnostics.cycle:CycleEnv",
    "Epo-Diag-Memory-v0": "epo_lab.diagnostics.memory:MemoryEnv",
    "Epo-Diag-CyclicMdp-v0": "epo_lab.diagnostics.cyclic_mdp:CyclicMdpEnv",
    "Epo-Diag-PickPlace-v0": "epo_lab.diagnostics.pick_place:PickPlaceEnv",
    "Epo-Diag-KeyDoor-v0": "epo_lab.diagnostics.key_door:KeyDoorEnv",
    "Epo-Diag-Jumper-v0": "epo_lab.diagnostics.jumper:JumperEnv",
}

for _id, _env in TASKS.items():
    if _id not in gym.registry:
        gym.register(id=_id, entry_point=_env, kwargs={"diagnostic": _env, "metric": "Metrics/score"})
