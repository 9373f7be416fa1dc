"""Scene parts that need no download."""
