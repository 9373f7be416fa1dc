"""Runners: when to roll out, update, log, save and stop."""
