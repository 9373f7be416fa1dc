"""Set up what all tests share, before anything imports torch."""

import os
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


SLOW = (
    "test_contacts.py::test_feet_and_cubes_rest_on_the_surface[mesh-newton_mjwarp]",
    "test_contacts.py::test_joints_follow_their_targets[kuka_allegro-newton_mjwarp]",
    "test_contacts.py::test_joints_follow_their_targets[shadow_hand-newton_mjwarp]",
    "test_contacts.py::test_joints_follow_their_targets[unitree_a1-newton_mjwarp]",
    "test_diagnostic_commands.py::test_two_processes_train_one_population",
    "test_envpool_commands.py::test_a_resumed_run_says_that_episodes_begin_anew",
    "test_envpool_commands.py::test_evaluate_prints_and_writes_a_score",
    "test_envpool_commands.py::test_two_processes_train_one_population",
    "test_esac_learns.py::test_it_solves_the_smooth_diagnostic[cem_rl-120]",
    "test_esac_learns.py::test_the_sac_actor_of_esac_fails_with_a_wrong_target",
    "test_evaluate.py::test_populations_and_ppo_stand_in_one_table_and_one_file",
    "test_franka_scripted.py::test_a_cube_is_slid_onto_the_goal[newton_mjwarp-4]",
    "test_kuka_suite.py::test_scripted_controller_lifts_a_cube[newton_mjwarp]",
    "test_kuka_suite.py::test_sizes_and_random_actions[OneArm-Throw-newton_mjwarp]",
    "test_off_policy_commands.py::test_a_killed_run_goes_on_as_if_nothing_had_happened",
    "test_off_policy_commands.py::test_a_policy_is_played_exported_and_evaluated[pql]",
    "test_off_policy_commands.py::test_agents_of_both_families_are_compared",
    "test_ppo_learns.py::test_learning_beats_not_learning",
    "test_robots.py::test_default_pose_is_held[newton_mjwarp-dmc_humanoid]",
    "test_robots.py::test_random_actions_leave_everything_finite[newton_mjwarp-dmc_humanoid-200]",
    "test_runner.py::test_a_resumed_run_is_the_uninterrupted_one[gru]",
    "test_sac_learns.py::test_sac_fails_with_a_wrong_target[bootstrap]",
    "test_stock_commands.py::test_agents_without_a_policy_run[Epo-Kuka-TwoArm-Reorient-Partition-v0-ovphysx]",
    "test_timing.py::test_halving_dt_and_doubling_decimation_keeps_rewards[Epo-Anymal-Flat-v0-0-100-fixed0]",
    "test_train_and_play.py::test_checkpoint_of_another_network_is_refused_after_the_start",
    "test_train_and_play.py::test_same_seed_gives_the_same_run",
    "test_wandb_offline.py::test_a_resumed_run_is_the_same_wandb_run",
)
"""The slowest tests that have a quicker sibling; they run with ``-m slow``, beside those that are marked themselves."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the slowest tests, before markers choose, and let the unit tests come first."""
    items.sort(key=lambda item: "/unit/" not in item.path.as_posix())
    for item in items:
        if item.nodeid.endswith(SLOW):
            item.add_marker(pytest.mark.slow)


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
