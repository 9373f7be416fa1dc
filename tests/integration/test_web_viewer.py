"""``play.py --viz viser`` in a real browser: the page shows robots, and only this machine can open it."""

import importlib.util
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from support.browser import find_chromium, open_page
from support.command import ROOT, script

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(find_chromium() is None, reason="no browser: apt-get install chromium"),
    pytest.mark.skipif(importlib.util.find_spec("viser") is None, reason="no viewer: ./isaaclab.sh -i viewer"),
]

TASK = "Epo-Kuka-OneArm-Regrasp-v0"
LEFT = (320, 0, 930, 800)
"""Part of the window between the notice at the left and the panel at the right."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def viewer(tmp_path_factory):
    """A viewer of a small population; yields its address."""
    folder = tmp_path_factory.mktemp("user")
    options = ["--num_envs", "8", "--max_iterations", "1", "agent.algorithm.census_interval=1"]
    trained = script("train", "--task", TASK, *options, cwd=folder, timeout=550)
    assert trained.returncode == 0, trained.stderr[-3000:]
    port = free_port()
    command = [sys.executable, str(ROOT / "scripts/play.py"), "--task", TASK, "--viz", "viser", "--agents", "0,3"]
    log = folder / "play.log"
    with log.open("w") as file:
        process = subprocess.Popen([*command, "--port", str(port)], cwd=folder, stdout=file, stderr=file)
    try:
        end = time.monotonic() + 400
        while "Watch: " not in log.read_text():
            assert process.poll() is None and time.monotonic() < end, log.read_text()[-3000:]
            time.sleep(0.5)
        yield re.search(r"Watch: (\S+)", log.read_text())[1], port, log, folder
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 0
    finally:
        process.kill()


def test_the_browser_shows_the_robots_and_their_names(viewer, tmp_path):
    url, port, log, _ = viewer
    assert url == f"http://localhost:{port}"
    assert "environment 0: master" in log.read_text() and "environment 1: follower 3" in log.read_text()
    with open_page(url, tmp_path) as page:
        end = time.monotonic() + 180
        while True:
            picture = page.picture()
            colors = np.asarray(picture.crop(LEFT)).reshape(-1, 3)
            # a page without a scene is one colour; the ground alone has few, and no dark ones
            if len(np.unique(colors // 8, axis=0)) > 60 and (colors.max(axis=1) < 110).mean() > 0.0005:
                break
            assert time.monotonic() < end, "the canvas stays empty"
            time.sleep(2.0)
        assert page.evaluate("document.querySelectorAll('canvas').length") >= 1
        text = page.evaluate("document.body.innerText")
        assert "environment 0: master" in text and "follower 3" in text
        assert "Look at" in text, "one can go along with a single environment"


def test_a_browser_goes_along_with_whom_it_looks_at(tmp_path):
    import viser

    from epo_lab.commands.viewer import ALL, Focus

    server = viser.ViserServer(host="127.0.0.1", port=free_port(), verbose=False)
    view = SimpleNamespace(follow=None, eye=(2.0, -2.0, 1.5), target=(0.0, 0.0, 0.5))
    cfg = SimpleNamespace(video_views={"front": view}, scene=SimpleNamespace(num_envs=2, env_spacing=2.0))
    focus = Focus(server, cfg, 2)
    try:
        with open_page(f"http://127.0.0.1:{server.get_port()}", tmp_path):
            end = time.monotonic() + 120
            while not server.get_clients():
                assert time.monotonic() < end
                time.sleep(0.2)
            (client,) = server.get_clients().values()
            looks = []
            for choice, x in (("environment 1", 3.0), ("environment 1", 4.0), (ALL, 4.0)):
                focus._choice.value = choice
                focus.update([(0.0, 0.0, 0.0), (x, 0.0, 0.0)])
                time.sleep(1.0)
                looks.append(client.camera.look_at.tolist())
            np.testing.assert_allclose(looks, [[3.0, 0.0, 0.0], [4.0, 0.0, 0.0], [0.0, 0.0, 0.5]], atol=1e-6)
    finally:
        server.stop()


def test_nobody_else_can_open_it(viewer):
    _, port, _, _ = viewer
    listening = [
        line.split()[1]
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
        if line.split()[3] == "0A" and line.split()[1].endswith(f":{port:04X}")
    ]
    assert listening == [f"0100007F:{port:04X}"], "127.0.0.1 and nothing else"


def test_a_port_in_use_is_refused(viewer):
    _, port, _, folder = viewer
    result = script("play", "--task", TASK, "--viz", "viser", "--port", str(port), cwd=folder)
    assert result.returncode == 2 and f"cannot listen on 127.0.0.1:{port}" in result.stderr
