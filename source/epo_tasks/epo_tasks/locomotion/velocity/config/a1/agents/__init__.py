"""Agents for the A1."""
