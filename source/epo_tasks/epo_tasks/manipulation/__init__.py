"""Tasks in which hands move objects."""
