"""The standard benchmarks (MuJoCo, DeepMind Control, Box2D, ...) in their original form, by EnvPool's C++ threads."""
