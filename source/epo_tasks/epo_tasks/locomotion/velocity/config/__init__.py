"""One folder a robot."""
