"""Seven robots, each built from its facts: one module a robot with its ``FACTS`` and its ``ArticulationCfg``."""
