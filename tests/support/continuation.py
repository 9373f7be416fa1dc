"""Save a simulated task in the middle of its episodes, and go on from there again and again."""

from __future__ import annotations

from typing import Any

import torch
from benchmarks.resume import Recording, draw_actions, play

from epo_lab.runner.physics import save_physics, set_physics_state
from epo_lab.runner.state import rng_state, set_rng_state

BEFORE, STEPS = 30, 12
SAME_ORDER = "env.sim.physics.deterministic=true"
"""Without it PhysX takes contacts in an order that depends on what was before."""
LAST_STEPS = 5
"""Steps that two environments have left when the state is saved."""


class Continuation:
    """A task that is saved in the middle of its episodes, and what it saw when it went on."""

    def __init__(self, env: Any) -> None:
        """Take steps, save, and take more."""
        self.env = env
        actions = draw_actions(env, BEFORE + STEPS, seed=1)
        self.actions = actions[BEFORE:]
        play(env, actions[:BEFORE])
        with torch.inference_mode():
            env.episode_length_buf[:2] = env.max_episode_length - LAST_STEPS
        self.state, self.rng = save_physics(env), rng_state()
        self.run = play(env, self.actions)

    def restored(self, *without: str, **changes: Any) -> Recording:
        """Restore all but the leaves whose names contain one of some texts, and go on with the same actions."""
        leaves = self.state["leaves"]
        kept = {path: value for path, value in leaves.items() if not any(part in path for part in without)}
        assert not without or len(kept) < len(leaves), "nothing has such a name"
        # new episodes: what is not restored is another one's
        with torch.inference_mode():
            self.env.reset()
        assert set_physics_state(self.env, {**self.state, "leaves": kept, **changes}) == ""
        set_rng_state(self.rng)
        return play(self.env, self.actions)


def same(one: Recording, other: Recording) -> bool:
    """Return whether two continuations are the same to the last bit."""
    return all(torch.equal(*pair) for pair in zip(one, other, strict=True))
