"""Terms of the humanoid that Isaac Lab does not have."""
