"""Algorithms that learn from a replay: SAC, TD3 and PQL."""
