"""Keys under which data travel in observations and extras."""

AGENT_ID = "agent_id"
"""Observations: the member of the population that acts; int64, shape (num_envs, 1). Without it, it is the master."""

TIME_OUTS = "time_outs"
"""Extras: episodes that ended because their time was over, so that their value goes on; shape (num_envs,)."""

FINAL_OBS = "final_obs"
"""Extras: observations before the reset of environments whose episode ended in this step; other rows mean nothing, and
in a step without an ending they may be those of an earlier one."""

BROKEN = "broken_envs"
"""Extras: environments that have given a non-finite number in this iteration; bool, shape (num_envs,)."""

LAST_EPISODE = "last_episode"
"""Extras: a dict of what every environment's last finished episode brought; NaN before the first."""

LOG = "log"
"""Extras: a dict of scalars by tag, which rsl_rl's logger averages over an iteration."""
