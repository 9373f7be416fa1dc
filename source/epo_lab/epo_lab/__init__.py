"""Evolutionary Policy Optimization and its relatives on rsl_rl.

Importing the package imports neither torch nor Isaac Lab; its parts do when they are asked for.
"""
