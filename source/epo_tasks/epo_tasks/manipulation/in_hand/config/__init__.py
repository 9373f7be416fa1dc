"""The two hands."""
