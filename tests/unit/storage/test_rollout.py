"""Whole columns, split where episodes end: the same as rsl_rl's, trajectory by trajectory."""

import pytest
import torch
from rsl_rl.utils import split_and_pad_trajectories, unpad_trajectories

from support.toy_env import ToyEnv, make, rollout, settings

pytestmark = pytest.mark.unit

POPULATION = {"num_agents": 4, "genes__dim": 6, "evolution__trigger": "off"}


@pytest.mark.parametrize("recurrent", ["lstm", "gru"])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_padded_columns_are_those_of_rsl_rl(recurrent, share):
    env = ToyEnv()
    algorithm = make(env, settings(recurrent, **POPULATION))
    rollout(algorithm, env, 8)
    st = algorithm.storage
    torch.manual_seed(1)
    st.dones.copy_(torch.rand(st.dones.shape) < share)
    seen = 0
    for batch in st.recurrent_mini_batch_generator(2, 1):
        # which columns these are: those of the same actions
        matches = (batch.actions.unsqueeze(2) == st.actions[:, st.source].unsqueeze(1)).all(-1).all(0)
        labels = batch.labels[0]
        columns = [
            next(c for c in row.nonzero().flatten().tolist() if st.labels[c] == label)
            for row, label in zip(matches, labels, strict=True)
        ]
        sources = st.source[columns]
        expected, masks = split_and_pad_trajectories(st.observations[:, sources]["policy"], st.dones[:, sources])
        assert torch.equal(batch.masks, masks)
        assert torch.equal(batch.observations["policy"][masks], expected[masks])
        agents = unpad_trajectories(batch.observations["agent_id"], batch.masks)
        assert torch.equal(agents.squeeze(-1), labels.expand(8, -1))

        # trajectories begin in the stored states, or in zero after a done
        begins = torch.ones(8, len(sources), dtype=torch.bool)
        begins[1:] = st.dones[:-1, sources].squeeze(-1).bool()
        states = batch.hidden_states[0] if recurrent == "lstm" else (batch.hidden_states[0],)
        for kept, state in zip(st.first_hidden[0], states, strict=True):
            number = 0
            for column in range(len(sources)):
                for step in begins[:, column].nonzero().flatten().tolist():
                    wanted = kept[:, sources[column]] if step == 0 else torch.zeros_like(kept[:, 0])
                    assert torch.equal(state[:, number], wanted)
                    number += 1
            assert number == state.shape[1]
        seen += len(sources)
    assert seen == st.width
