"""Settings: profiles and experiments from ``config/``, and overrides from the command line."""
