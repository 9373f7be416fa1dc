"""The Control Suite's humanoid runs."""
