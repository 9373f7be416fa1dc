"""Controllers without learning, which show that a task can be done."""
