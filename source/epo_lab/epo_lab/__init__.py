"""Evolutionary Policy Optimization and its relatives on rsl_rl.

Importing the package imports neither torch nor Isaac Lab; its parts do when they are asked for.
"""

import os

# rsl_rl imports GitPython, which refuses to be imported on a machine without git unless it is told to be quiet
os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
