"""Goal, observations, rewards, terminations and events of the in-hand tasks."""
