"""What agents learn from: roll-outs."""
