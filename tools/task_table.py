"""Write the table of task names anew from what is registered, after a task was added or Isaac Lab changed:

./isaaclab.sh -p tools/task_table.py
"""

import gymnasium as gym

from epo_lab.commands.tasks import load_tasks
from epo_lab.configs.names import NONE, TABLE, agent_names
from epo_lab.configs.presets import PPO_ENTRY
from epo_lab.configs.sizes import FOREIGN_ENVS, SIZES

ORDER = ("cpu", "gpu", "paper")


def current_table() -> str:
    """Return the table of all registered tasks of epo-lab and Isaac Lab."""
    import epo_lab.diagnostics
    from epo_lab.diagnostics.agents import NUM_ENVS

    load_tasks()
    lines = ["task\tdefault\tmetric\tenvironments (cpu/gpu/paper)\tmore agents"]
    for name in epo_lab.diagnostics.TASKS:
        lines.append(f"{name}\tepo\t{gym.registry[name].kwargs['metric']}\t{NUM_ENVS}\t{NONE}")
    ours = [
        name for name in gym.registry if name.startswith("Epo-") and "env_cfg_entry_point" in gym.registry[name].kwargs
    ]
    isaac = sorted(
        name for name in gym.registry if name.startswith("Isaac") and "env_cfg_entry_point" in gym.registry[name].kwargs
    )
    for name in [*ours, *isaac]:
        entries = gym.registry[name].kwargs
        default = entries.get("default_preset", "ppo" if PPO_ENTRY in entries else NONE)
        lines.append(
            "\t".join([name, default, entries.get("metric", NONE), sizes(name, name in ours), more_agents(entries)])
        )
    return "\n".join(lines) + "\n"


def sizes(task: str, ours: bool) -> str:
    """Return the number of environments of each size."""
    numbers = FOREIGN_ENVS
    if ours:
        from isaaclab_tasks.utils import resolve_task_config

        presets = {size: [f"presets={size}"] for size in SIZES}
        numbers = {size: resolve_task_config(task, None, overrides=presets[size])[0].scene.num_envs for size in SIZES}
    return "/".join(str(numbers[size]) for size in ORDER)


def more_agents(entries: dict) -> str:
    """Return the agents of a registration that are no presets."""
    names = {
        key.removeprefix("rsl_rl_").removesuffix("_cfg_entry_point")
        for key in entries
        if key.startswith("rsl_rl_") and key != PPO_ENTRY
    } - set(agent_names())
    suffixes = sorted(name.removeprefix("ppo_") for name in names if name.startswith("ppo_"))
    own = sorted(
        name for name in names if not any(name == f"{preset}_{end}" for preset in agent_names() for end in suffixes)
    )
    return ",".join([*(f"*_{end}" for end in suffixes), *own]) or NONE


if __name__ == "__main__":
    TABLE.write_text(current_table())
    print(f"Written: {TABLE}")
