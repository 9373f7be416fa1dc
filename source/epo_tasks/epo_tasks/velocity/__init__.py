"""Tracking a commanded velocity."""
