"""Terms of the parkour task."""
