"""Agents for the in-hand tasks."""
