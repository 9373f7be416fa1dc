"""What the scripts do: train, play, evaluate, compare, report. Isaac Lab is imported when a task needs it."""
