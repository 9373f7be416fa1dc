"""The field of tracks: heights, goals, mesh, and how robots are spread over it."""
