"""The tasks, by number of arms."""
