"""The environment class and the config that all tasks share."""
