"""The Control Suite's humanoid runs, walks and stands."""
