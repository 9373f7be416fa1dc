"""Settings: presets of agents, sizes, experiments from ``config/``, and overrides from the command line."""
