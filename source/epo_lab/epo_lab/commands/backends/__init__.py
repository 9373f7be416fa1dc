"""Where environments come from: Isaac Lab, or our own diagnostics without it."""
