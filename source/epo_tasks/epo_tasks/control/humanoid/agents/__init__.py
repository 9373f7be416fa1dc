"""Agents for the humanoid."""
