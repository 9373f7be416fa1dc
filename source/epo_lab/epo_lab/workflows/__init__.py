"""What the scripts do: train and play. Isaac Lab is imported when a task needs it, not before."""
