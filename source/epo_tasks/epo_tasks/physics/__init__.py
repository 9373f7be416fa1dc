"""Physics engines: presets and what they need on a machine without CUDA."""
