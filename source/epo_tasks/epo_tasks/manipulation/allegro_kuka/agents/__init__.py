"""Agents of the Allegro-Kuka tasks."""
