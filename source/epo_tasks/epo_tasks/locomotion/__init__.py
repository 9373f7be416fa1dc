"""Walking tasks."""
