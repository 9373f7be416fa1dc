"""Agents for the parkour of the A1."""
