"""Control, goals, observations, rewards, terminations and events of the Franka cube tasks."""
