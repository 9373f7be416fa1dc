"""Where environments come from: Isaac Lab, EnvPool, or our own diagnostics."""
