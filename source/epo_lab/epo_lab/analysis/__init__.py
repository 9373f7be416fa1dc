"""What is computed from finished runs: statistics over seeds, diversity, figures."""
