"""rsl_rl models that are conditioned on an agent's gene."""
