import json
import socket
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from epo_lab.base.errors import UserError
from epo_lab.commands.video import write_captions
from epo_lab.commands.viewer import (
    ALL,
    UNKNOWN,
    Labels,
    check_port,
    fitness_colors,
    fitness_of,
    label_texts,
    url,
    wants,
)

pytestmark = pytest.mark.unit


def test_fitness_is_that_of_the_last_census_before_the_checkpoint(tmp_path):
    assert fitness_of(tmp_path, 9) == []
    lines = [json.dumps({"iteration": n, "fitness": [n, None]}) + "\n" for n in (10, 20, 30)]
    (tmp_path / "population.jsonl").write_text("".join(lines))
    assert fitness_of(tmp_path, 19) == [20, None], "model_19 is saved after 20 iterations"
    assert fitness_of(tmp_path, 5) == []


def test_best_is_yellow_worst_is_dark_and_unknown_is_grey():
    best, worst, unknown = fitness_colors([2, 0, 1], [1.0, None, 9.0])
    assert best == (253, 231, 37) and worst == (68, 1, 84), "the ends of viridis"
    assert unknown == UNKNOWN
    assert fitness_colors([0], []) == [UNKNOWN]


def test_labels_name_agent_and_fitness():
    assert label_texts([0, 2, 5], [1.5, None, 0.25]) == [
        "master, fitness 1.5",
        "follower 2, fitness 0.25",
        "follower 5",
    ]


def test_a_port_that_is_taken_is_refused():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1:{port}"):
            check_port("127.0.0.1", port)
    check_port("127.0.0.1", port)
    with pytest.raises(UserError, match="choose another --port or --host"):
        check_port("127.0.0.1", 99999)


def test_which_viewer_and_where():
    assert wants("kit,viser", "viser") and not wants("kit", "viser") and not wants(None, "viser")
    assert url("127.0.0.1", 8080) == "http://localhost:8080" and url("10.0.0.2", 81) == "http://10.0.0.2:81"


def test_captions_have_the_colour_of_the_fitness():
    pictures = np.zeros((2, 60, 200, 3), np.uint8)
    drawn = write_captions(pictures, [("master", (255, 0, 0)), ("follower 3", (0, 0, 255))])
    assert drawn[0, 0, 0].tolist() == [255, 0, 0] and drawn[1, 0, 0].tolist() == [0, 0, 255]
    assert drawn[0, 10:40].max() == 255 and pictures.max() == 0


class Node:
    def __init__(self, *arguments, **options):
        self.arguments = arguments
        self.content = ""


class Server:
    """Notes what a viewer would show; a node of the same name replaces the old one."""

    def __init__(self):
        self.shown, self.panel = {}, Node()
        self.scene = SimpleNamespace(add_icosphere=self.put, add_label=self.put)
        self.choice = SimpleNamespace(value=ALL)
        self.gui = SimpleNamespace(add_markdown=lambda text: self.panel, add_dropdown=self.offer)
        self.camera = SimpleNamespace(position=(9.0, 9.0, 9.0), look_at=(0.0, 0.0, 0.0))

    def offer(self, label, options, initial_value):
        self.options = options
        return self.choice

    def get_clients(self):
        return {0: SimpleNamespace(camera=self.camera)}

    def put(self, name, *arguments, **options):
        self.shown[name] = Node(*arguments)
        return self.shown[name]


def watched():
    """An environment with a viewer."""
    server = Server()
    view = SimpleNamespace(follow=None, eye=(2.0, -2.0, 1.5), target=(0.0, 0.0, 0.5))
    scene = SimpleNamespace(env_origins=torch.arange(9.0).view(3, 3))
    sim = SimpleNamespace(visualizers=[SimpleNamespace(_viewer=SimpleNamespace(_server=server))])
    cfg = SimpleNamespace(video_views={"front": view}, scene=SimpleNamespace(num_envs=3, env_spacing=2.0))
    return server, SimpleNamespace(cfg=cfg, scene=scene, sim=sim)


def test_labels_follow_the_fitness_while_it_trains():
    server, env = watched()
    labels = Labels(env, [1, 0, 1], [])
    assert server.shown["/agents/1/label"].arguments == ("\u2605 master",)
    assert server.shown["/agents/0/beacon"].arguments[1] == UNKNOWN
    labels.tell([1.0, 9.0])
    labels.update()
    assert server.shown["/agents/2/label"].arguments == ("follower 1, fitness 9",)
    assert server.shown["/agents/2/beacon"].position[:2] == [6.0, 7.0]
    assert "yellow is best" in server.panel.content and "environment 1: master, fitness 1" in server.panel.content


def test_the_camera_goes_to_whom_one_looks_at_along_with_it_and_back():
    server, env = watched()
    labels, camera = Labels(env, [0, 1, 2], []), server.camera
    assert server.options == [ALL, "environment 0", "environment 1", "environment 2"]
    assert camera.position == (9.0, 9.0, 9.0), "nobody has chosen anything"
    server.choice.value = "environment 1"
    labels.update()
    assert camera.look_at == pytest.approx((3.0, 4.0, 5.5)) and camera.position == pytest.approx((5.0, 2.0, 7.0))
    camera.position = (0.0, 0.0, 10.0)  # turned by hand
    env.scene.env_origins[1, 0] += 1.0
    labels.update()
    assert camera.look_at == pytest.approx((4.0, 4.0, 5.5)) and camera.position == pytest.approx((1.0, 0.0, 10.0))
    server.choice.value = ALL
    labels.update()
    assert camera.look_at == (0.0, 0.0, 0.5) and camera.position[0] > 2.0
