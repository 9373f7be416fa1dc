"""Isaac Lab's LEAPP export takes our masters as they are."""

import numpy as np
import onnxruntime
import pytest
import torch
import yaml

from support.command import isaaclab, script
from support.toy_env import ToyEnv, make, settings, train

pytestmark = pytest.mark.integration

TASK = "Epo-Anymal-Flat-v0"
NODE = "policy"


def capture(policy, env, folder, observations):
    """Export a policy as Isaac Lab does, with its own helpers, and return what the policy does meanwhile."""
    import leapp
    from isaaclab_rl.entrypoints.backends import export_rsl_rl as stock
    from leapp import annotate

    leapp.start("toy", save_path=str(folder), max_cached_io=len(observations))
    policy.reset()
    actions = []
    for values in observations:
        with torch.inference_mode():
            hidden = stock.ensure_actor_hidden_state_initialized(policy, 1, "cpu", torch.float32)
            traced = annotate.input_tensors(NODE, {"observation": values})
            if stock.is_actor_recurrent_policy(policy):
                state = annotate.state_tensors(NODE, stock.state_dict_from_actor_hidden(hidden))
                stock.set_actor_hidden_state(policy, stock.actor_hidden_from_registered(state, hidden))
            action = policy(env.get_observations()[:1].set("policy", traced))
            if stock.is_actor_recurrent_policy(policy):
                annotate.update_state(NODE, stock.state_dict_from_actor_hidden(stock.get_actor_hidden_state(policy)))
            annotate.output_tensors(NODE, {"action": action}, export_with="onnx-dynamo")
        actions.append(torch.as_tensor(action).clone())
    leapp.stop()
    leapp.compile_graph(visualize=False, validate=True)
    return actions


@pytest.mark.parametrize("recurrent", [None, "lstm"])
def test_the_graph_of_a_master_acts_as_the_master(recurrent, tmp_path):
    env = ToyEnv()
    algorithm = make(env, settings(recurrent, num_agents=4, genes__dim=6, evolution__trigger="off"))
    train(algorithm, env, 2)
    algorithm.eval_mode()
    observations = torch.randn(5, 1, 5, generator=torch.Generator().manual_seed(0))
    expected = capture(algorithm.get_policy(), env, tmp_path, observations)
    session = onnxruntime.InferenceSession(next(tmp_path.rglob("*.onnx")))
    names = [entry.name for entry in session.get_inputs() if entry.name != "observation"]
    state = {entry.name: np.zeros(entry.shape, np.float32) for entry in session.get_inputs() if entry.name in names}
    assert bool(state) == (recurrent is not None), "the memory of a recurrent master is an input"
    for values, action in zip(observations, expected, strict=True):
        outputs = dict(zip(
            [entry.name for entry in session.get_outputs()],
            session.run(None, {"observation": values.numpy(), **state}),
            strict=True,
        ))  # fmt: skip
        torch.testing.assert_close(torch.tensor(outputs["action"]), action, rtol=0, atol=1e-5)
        state = {name: outputs[name.replace("_in", "_out")] for name in names}


@pytest.mark.slow
def test_isaac_labs_command_exports_a_trained_master(tmp_path):
    size = ["--num_envs", "16", "--max_iterations", "1", "agent.num_steps_per_env=4", "agent.algorithm.num_agents=4"]
    trained = script("train", "--task", TASK, "--agent", "epo", *size, cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    options = ["--rl_library", "rsl_rl", "--task", TASK, "--agent", "rsl_rl_epo_cfg_entry_point", "--device", "cpu"]
    settings = ["--disable_graph_visualization", "presets=cpu", "agent.algorithm.num_agents=4"]
    exported = isaaclab("leapp", "export", *options, *settings, cwd=tmp_path)
    assert exported.returncode == 0, exported.stderr[-3000:]
    graph = yaml.safe_load(next(tmp_path.glob(f"logs/rsl_rl/*/*/{TASK}/{TASK}.yaml")).read_text())
    outputs = {output["name"]: output for output in graph["models"][TASK]["outputs"]}
    assert outputs["joint_pos"]["kind"] == "target/joint/position"
    assert outputs["joint_pos"]["element_names"][0][0] == "LF_HAA"
    assert {"joint_pos_kp_gains", "joint_pos_kd_gains"} <= set(outputs)
    assert graph["pipeline"]["configs"]["frequency"] == 50.0
