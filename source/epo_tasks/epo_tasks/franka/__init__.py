"""A Franka arm pushes a cube to a goal, or stacks it on another: the cube tasks of IsaacGymEnvs, SAPG and CPO."""
