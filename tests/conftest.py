"""Set up what all tests share, before anything imports torch."""

import gc
import os
import re
import runpy
import signal
import sys

import pytest

from support.command import ROOT

# Two workers and the commands they start share few cores: with a pool of torch threads each, they mostly wait for each
# other. Commands inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell that starts the tests in the background has them ignore Ctrl-C; the commands that tests stop with it must not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Modules stay: the collector need not look at what importing them makes, now or later.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


SLOW = (
    "off_policy/test_algorithm.py::test_a_resumed_run_is_the_uninterrupted_one[TD3]",
    "test_a1_flat.py::test_standing_robots_keep_their_height_and_fallen_ones_end[newton_mjwarp]",
    "test_anymal_flat.py::test_standing_is_no_fall[newton_mjwarp]",
    "test_contacts.py::test_feet_and_cubes_rest_on_the_surface[mesh-newton_mjwarp]",
    "test_contacts.py::test_hanging_humanoid_comes_to_rest_where_springs_balance_gravity[newton_mjwarp]",
    "test_contacts.py::test_joints_follow_their_targets[allegro_hand-newton_mjwarp]",
    "test_contacts.py::test_joints_follow_their_targets[franka_panda-newton_mjwarp]",
    "test_contacts.py::test_joints_follow_their_targets[kuka_allegro-newton_mjwarp]",
    "test_contacts.py::test_joints_follow_their_targets[shadow_hand-newton_mjwarp]",
    "test_contacts.py::test_joints_follow_their_targets[unitree_a1-newton_mjwarp]",
    "test_contacts.py::test_two_hands_squeeze_a_cube_without_blowing_up[newton_mjwarp]",
    "test_diagnostic_commands.py::test_two_processes_train_one_population",
    "test_distributed.py::test_the_signal_of_one_process_ends_all_in_the_same_iteration",
    "test_envpool_commands.py::test_a_resumed_run_says_that_episodes_begin_anew",
    "test_envpool_commands.py::test_evaluate_prints_and_writes_a_score",
    "test_envpool_commands.py::test_every_agent_trains[pbt]",
    "test_envpool_commands.py::test_two_processes_train_one_population",
    "test_esac_learns.py::test_it_solves_the_smooth_diagnostic[cem_rl-120]",
    "test_esac_learns.py::test_the_sac_actor_of_esac_fails_with_a_wrong_target",
    "test_evaluate.py::test_populations_and_ppo_stand_in_one_table_and_one_file",
    "test_franka.py::test_cubes_lie_still_on_the_table[Epo-Franka-CubeStack-v0-newton_mjwarp]",
    "test_franka_scripted.py::test_a_cube_is_slid_onto_the_goal[newton_mjwarp-4]",
    "test_franka_scripted.py::test_a_cube_is_stacked_and_let_go_which_returns_little[newton_mjwarp-4]",
    "test_humanoid_run.py::test_rewards_are_the_specified_sum[newton_mjwarp]",
    "test_kuka_suite.py::test_scripted_controller_lifts_a_cube[newton_mjwarp]",
    "test_kuka_suite.py::test_sizes_and_random_actions[OneArm-Reorient-newton_mjwarp]",
    "test_kuka_suite.py::test_sizes_and_random_actions[OneArm-Throw-newton_mjwarp]",
    "test_kuka_suite.py::test_sizes_and_random_actions[TwoArm-Reorient-Hole-newton_mjwarp]",
    "test_kuka_two_arm.py::test_partition_stands_falls_and_stands_again[newton_mjwarp]",
    "test_off_policy_commands.py::test_a_killed_run_goes_on_as_if_nothing_had_happened",
    "test_off_policy_commands.py::test_a_policy_is_played_exported_and_evaluated[pql]",
    "test_off_policy_commands.py::test_agents_of_both_families_are_compared",
    "test_off_policy_commands.py::test_isaac_labs_own_command_trains_sac",
    "test_ppo_learns.py::test_learning_beats_not_learning",
    "test_robots.py::test_default_pose_is_held[newton_mjwarp-anymal_c]",
    "test_robots.py::test_default_pose_is_held[newton_mjwarp-dmc_humanoid]",
    "test_robots.py::test_default_pose_is_held[newton_mjwarp-kuka_allegro]",
    "test_robots.py::test_default_pose_is_held[newton_mjwarp-shadow_hand]",
    "test_robots.py::test_default_pose_is_held[newton_mjwarp-unitree_a1]",
    "test_robots.py::test_random_actions_leave_everything_finite[newton_mjwarp-allegro_hand-200]",
    "test_robots.py::test_random_actions_leave_everything_finite[newton_mjwarp-anymal_c-200]",
    "test_robots.py::test_random_actions_leave_everything_finite[newton_mjwarp-dmc_humanoid-200]",
    "test_robots.py::test_random_actions_leave_everything_finite[newton_mjwarp-shadow_hand-200]",
    "test_robots.py::test_random_actions_leave_everything_finite[newton_mjwarp-unitree_a1-200]",
    "test_robots.py::test_tendons_pull_the_shadow_hands_distal_joints_along[newton_mjwarp-shadow_hand]",
    "test_runner.py::test_a_resumed_run_is_the_uninterrupted_one[cpo]",
    "test_runner.py::test_a_resumed_run_is_the_uninterrupted_one[gru]",
    "test_runner.py::test_a_resumed_run_is_the_uninterrupted_one[pbt]",
    "test_sac_learns.py::test_sac_fails_with_a_wrong_target[bootstrap]",
    "test_stock_commands.py::test_agents_without_a_policy_run[Epo-Kuka-TwoArm-Reorient-Partition-v0-ovphysx]",
    "test_timing.py::test_halving_dt_and_doubling_decimation_keeps_rewards[Epo-Anymal-Flat-v0-0-100-fixed0-action0]",
    "test_train_and_play.py::test_checkpoint_of_another_network_is_refused_after_the_start",
    "test_train_and_play.py::test_resume_goes_on_in_the_same_folder_until_the_total",
    "test_train_and_play.py::test_same_seed_gives_the_same_run",
    "test_train_and_play.py::test_the_terminal_says_what_runs_and_how_far_it_is",
    "test_wandb_offline.py::test_a_resumed_run_is_the_same_wandb_run",
)
"""The slowest tests that have a quicker sibling; they run with ``-m slow``, beside those that are marked themselves."""


def pytest_ignore_collect(collection_path, config):
    """Leave the files of other tests alone if unit tests are asked for: most of them import Isaac Lab."""
    if re.match(r"unit\b", config.option.markexpr) and collection_path.name in ("integration", "learning"):
        return True
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark the slowest tests, which have to be asked for, and let the unit tests come first."""
    items.sort(key=lambda item: "/unit/" not in item.path.as_posix())
    for item in items:
        if item.nodeid.endswith(SLOW):
            item.add_marker(pytest.mark.slow)
    if "slow" not in config.option.markexpr:
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]


@pytest.fixture
def refuse(tmp_path, monkeypatch, capfd):
    """Call a script in this process, in an empty folder, and check that it ends with one clear line and code 2."""
    monkeypatch.chdir(tmp_path)

    def call(name: str, *args: str, says: str) -> None:
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *args])
        with pytest.raises(SystemExit) as ending:
            runpy.run_path(str(ROOT / "scripts" / f"{name}.py"), run_name="__main__")
        error = capfd.readouterr().err
        assert ending.value.code == 2
        assert error.startswith(f"{name}: ") and error.count("\n") == 1, error
        assert says in error

    return call
