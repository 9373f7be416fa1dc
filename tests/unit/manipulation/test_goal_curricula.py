"""When the tolerance shrinks and when goals may take longer, and how rarely processes ask each other."""

from types import SimpleNamespace

import pytest
import torch

from epo_lab.base.processes import joint_mean
from epo_tasks.allegro_kuka.mdp import curriculum
from epo_tasks.allegro_kuka.mdp import goal as goal_module
from epo_tasks.allegro_kuka.mdp.curriculum import GoalLength
from epo_tasks.allegro_kuka.mdp.goal import GoalCommand

pytestmark = pytest.mark.unit

ENVS = 20


@pytest.fixture
def asked(monkeypatch) -> list[torch.Tensor]:
    """Return a list that gets an entry whenever processes would put their numbers together."""
    calls: list[torch.Tensor] = []

    def counted(values: torch.Tensor) -> torch.Tensor:
        calls.append(values)
        return joint_mean(values)

    for module in (goal_module, curriculum):
        monkeypatch.setattr(module, "joint_mean", counted)
    return calls


def make_goal() -> GoalCommand:
    """Return a goal that has nothing but the curriculum of its tolerance."""
    goal = GoalCommand.__new__(GoalCommand)
    goal.cfg = SimpleNamespace(
        tolerance=(0.075, 0.01), tolerance_interval=300, tolerance_successes=3.0, tolerance_factor=0.9
    )
    goal._env = SimpleNamespace(num_envs=ENVS)
    goal.tolerance, goal.last_successes, goal._steps_since_change = torch.tensor(0.075), torch.zeros(ENVS), 0
    return goal


def pass_time(goal: GoalCommand, steps: int) -> None:
    for _ in range(steps):
        goal._adapt_tolerance()


def test_processes_compare_successes_only_when_the_tolerance_may_change(asked):
    goal = make_goal()
    pass_time(goal, 299)
    assert len(asked) == 0
    pass_time(goal, 1)
    assert len(asked) == 1
    pass_time(goal, 160)
    assert len(asked) == 11, "every 16 steps while it is due"
    assert goal.tolerance.item() == pytest.approx(0.075)

    goal.last_successes.fill_(3.0)
    pass_time(goal, 15)
    assert goal.tolerance.item() == pytest.approx(0.075)
    pass_time(goal, 1)
    assert goal.tolerance.item() == pytest.approx(0.9 * 0.075) and len(asked) == 12
    pass_time(goal, 299)
    assert len(asked) == 12
    pass_time(goal, 1)
    assert goal.tolerance.item() == pytest.approx(0.9**2 * 0.075)


def test_a_fixed_tolerance_asks_nobody(asked):
    goal = make_goal()
    goal.cfg.tolerance = (0.075, 0.075)
    pass_time(goal, 1000)
    assert not asked


def test_the_counter_of_older_checkpoints_is_a_tensor():
    goal = make_goal()
    pass_time(goal, 7)
    saved = goal.state_dict()
    older = {**saved, "steps_since_change": torch.tensor(saved["steps_since_change"])}
    for state in (saved, older):
        other = make_goal()
        other.load_state_dict(state)
        assert other._steps_since_change == 7 and type(other._steps_since_change) is int


class Stages:
    """A curriculum of the goal length, and environments that finish episodes when told so."""

    def __init__(self, lengths: tuple[int, ...] = (60, 120, 400)) -> None:
        self.goal = SimpleNamespace(goal_length=400, last_episode={"lifted": torch.full((ENVS,), torch.nan)})
        self.env = SimpleNamespace(
            num_envs=ENVS,
            device="cpu",
            common_step_counter=0,
            episode_length_buf=torch.ones(ENVS, dtype=torch.long),
            command_manager=SimpleNamespace(get_term=lambda name: self.goal),
        )
        self.params = {"lengths": lengths, "lifted_share": 0.3}
        self.term = GoalLength(SimpleNamespace(params=self.params), self.env)

    def finish(self, count: int, lifted: int) -> None:
        """End an episode of the first environments, some of which had the object lifted."""
        ids = torch.arange(count)
        self.term(self.env, ids, **self.params)
        self.goal.last_episode["lifted"][ids] = (ids < lifted).float()

    def look(self) -> int:
        """Take as many steps as there are between two looks, and return the length."""
        for _ in range(16):
            self.env.common_step_counter += 1
            self.term.update()
        return self.goal.goal_length


def test_thirty_percent_of_lifts_end_a_stage_and_the_next_is_judged_anew():
    stages = Stages()
    assert stages.goal.goal_length == 60
    stages.finish(ENVS, lifted=5)
    assert stages.look() == 60, "25 %"
    stages.finish(ENVS, lifted=6)
    assert stages.look() == 120
    assert stages.look() == 120, "nobody finished an episode of this stage"
    stages.finish(ENVS, lifted=0)
    assert stages.look() == 120, "never back"
    stages.finish(ENVS, lifted=ENVS)
    assert stages.look() == 400


def test_most_environments_must_have_finished_an_episode():
    stages = Stages()
    stages.finish(17, lifted=17)
    assert stages.look() == 60
    stages.finish(18, lifted=18)
    assert stages.look() == 120


def test_lifts_before_the_stage_do_not_count():
    stages = Stages()
    stages.goal.last_episode["lifted"][18:] = 1.0
    stages.finish(18, lifted=5)
    assert stages.look() == 60, "5 of the 18 that finished an episode are 28 %; 7 of 20 would have been enough"


def test_a_reset_without_a_step_finishes_nothing():
    stages = Stages()
    stages.env.episode_length_buf.zero_()
    stages.finish(ENVS, lifted=ENVS)
    assert stages.look() == 60


def test_processes_compare_lifts_rarely_and_in_the_last_stage_not_at_all(asked):
    stages = Stages(lengths=(60, 400))
    for _ in range(10):
        stages.look()
    assert len(asked) == 10, "once in 16 steps"
    stages.finish(ENVS, lifted=ENVS)
    assert stages.look() == 400
    asked.clear()
    stages.finish(ENVS, lifted=ENVS)
    stages.look()
    assert not asked


def test_a_stage_is_saved_and_restored():
    stages = Stages()
    stages.finish(ENVS, lifted=ENVS)
    assert stages.look() == 120
    for lengths, expected in (((60, 120, 400), 120), ((50, 200, 400), 200), ((40, 100), 100)):
        other = Stages(lengths)
        other.term.load_state_dict(stages.term.state_dict())
        assert other.goal.goal_length == expected


@pytest.mark.parametrize(("lifted_elsewhere", "length"), [(0.05, 60), (0.1, 120)])
def test_the_lifts_of_all_processes_count_together(monkeypatch, lifted_elsewhere, length):
    # another process has finished an episode everywhere; half of the environments of this one lifted the object
    elsewhere = iter([1.0, lifted_elsewhere])
    monkeypatch.setattr(curriculum, "joint_mean", lambda values: (values.mean() + next(elsewhere)) / 2)
    stages = Stages()
    stages.finish(ENVS, lifted=10)
    assert stages.look() == length
