"""The files of docker/: linted, and what they say about each other is true. `docker/check.sh build` runs them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
SERVICES = ("train", "play", "dev")


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((DOCKER / "compose.yaml").read_text())


@pytest.fixture(scope="module")
def dockerfile():
    return re.sub(r"\\\n\s*", "", (DOCKER / "Dockerfile").read_text())


def test_dockerfile_and_scripts_are_clean():
    scripts = [*DOCKER.glob("*.sh"), *DOCKER.glob("cluster/*"), *ROOT.glob("tests/cluster/*.sh")]
    assert len(scripts) > 8
    for tool, files in {"hadolint": [DOCKER / "Dockerfile"], "shellcheck": scripts}.items():
        command = [Path(sys.executable).parent / tool, *files]
        result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        assert result.returncode == 0, result.stdout


def test_scripts_can_be_started():
    for path in [*DOCKER.rglob("*.sh"), ROOT / "tests/cluster/check.sh"]:
        assert path.stat().st_mode & 0o111, f"{path} is not executable"
        assert path.read_text().startswith("#!/usr/bin/env bash\n")


def test_base_image_is_pinned_by_digest(dockerfile):
    assert re.search(r"^ARG BASE_IMAGE=[\w.:-]+@sha256:[0-9a-f]{64}$", dockerfile, re.MULTILINE)
    assert re.findall(r"^FROM (.*)$", dockerfile, re.MULTILINE) == ["${BASE_IMAGE}"]


def test_container_does_not_run_as_root_and_tells_its_health(dockerfile):
    assert re.findall(r"^USER (.*)$", dockerfile, re.MULTILINE)[-1] == "${EPO_UID}:${EPO_GID}"
    assert re.search(r"^ARG EPO_UID=1000$", dockerfile, re.MULTILINE)
    assert "HEALTHCHECK" in dockerfile


def test_packages_are_installed_before_the_sources_are_copied(dockerfile):
    lines = dockerfile.splitlines()
    install = next(number for number, line in enumerate(lines) if "docker/install-python.sh" in line and "RUN" in line)
    assert install < lines.index("COPY . .")
    copied = " ".join(line for line in lines[:install] if line.startswith("COPY"))
    # what the launcher's fingerprint reads (isaaclab.sh), or the packages would be installed again at the first start
    for needed in ("isaaclab.sh", "requirements/*.txt", "epo_lab/pyproject.toml", "epo_tasks/pyproject.toml"):
        assert needed in copied


def test_everything_that_is_copied_is_in_the_context(dockerfile):
    allowed = re.findall(r"^!(.*)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    sources = [word for line in re.findall(r"^COPY (.*) \S+$", dockerfile, re.MULTILINE) for word in line.split()]
    assert len(sources) >= 6
    for source in sources:
        assert source == "." or source.split("/")[0] in allowed, source


@pytest.mark.parametrize("service", SERVICES)
def test_gpu_services_differ_by_their_gpus_only(compose, service):
    cpu, gpu = dict(compose["services"][service]), dict(compose["services"][f"{service}-gpu"])
    assert (cpu.pop("profiles"), gpu.pop("profiles")) == (["cpu"], ["gpu"])
    devices = gpu.pop("deploy")["resources"]["reservations"]["devices"]
    assert devices == [{"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}]
    assert [config.pop("shm_size") for config in (cpu, gpu)] == ["2gb", "8gb"]
    assert cpu == gpu


@pytest.mark.parametrize("service", SERVICES)
def test_services_keep_runs_and_caches_outside_of_the_container(compose, service):
    volumes = compose["services"][service]["volumes"]
    targets = {volume.split(":")[1]: volume.split(":")[0] for volume in volumes}
    assert targets["/cache"] == "cache" and "cache" in compose["volumes"]
    for target, source in targets.items():
        if target != "/cache":
            assert target == f"/workspace/epo-lab/{source.removeprefix('../').removeprefix('..')}".rstrip("/")


def test_entrypoints_name_existing_files(compose):
    for name in ("train", "play"):
        for word in compose["services"][name]["entrypoint"]:
            assert word in ("-p", "--host", "0.0.0.0") or (ROOT / word).is_file(), word


def test_entrypoint_refuses_a_cache_it_cannot_write(tmp_path):
    readonly = "/proc/self"  # not writable for root either
    result = subprocess.run(
        [DOCKER / "entrypoint.sh", "-h"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "EPO_CACHE": readonly},
    )
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1 and "cannot write to" in result.stderr


def test_health_is_that_of_the_runs_this_container_has_open(tmp_path):
    curves, events = tmp_path / "curves.csv", tmp_path / "events.out.tfevents.1"
    curves.touch()
    with events.open("w"):
        assert _health(seconds=900) == 0
        assert _health(seconds=-1) == 1
    assert _health(seconds=-1) == 0


def _health(seconds: int) -> int:
    # of this process alone: others may train on this machine
    text = (DOCKER / "healthcheck.sh").read_text().replace("/proc/[0-9]*/fd", "/proc/$PPID/fd")
    environment = {"PATH": "/usr/bin:/bin", "EPO_STALL_SECONDS": str(seconds)}
    return subprocess.run(["bash", "-c", text], env=environment, capture_output=True, check=False).returncode


def test_the_viewer_is_reached_through_its_port_and_by_this_machine_only(compose):
    play = compose["services"]["play"]
    assert play["entrypoint"][-2:] == ["--host", "0.0.0.0"], "of the container: its port would lead nowhere else"
    assert all(port.startswith("127.0.0.1:") for port in play["ports"])
