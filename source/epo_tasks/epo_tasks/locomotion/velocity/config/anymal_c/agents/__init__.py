"""Agents for ANYmal C."""
