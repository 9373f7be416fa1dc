"""Algorithms that learn from their last roll-out: EPO, and with other settings SAPG, CPO and PPO."""
