"""Command lines: options, and everything that can be said about them before torch or Isaac Lab is loaded."""
