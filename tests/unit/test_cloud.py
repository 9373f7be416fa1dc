"""Example files for Kubernetes and SkyPilot: their structure, and that they call what exists."""

import re
from pathlib import Path

import pytest
import yaml

from epo_lab.cli.train import make_parser
from epo_lab.configs.names import task_table

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
CLOUD = ROOT / "docker/cloud"
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
"""Names of Kubernetes objects (RFC 1123)."""


@pytest.fixture(scope="module")
def kubernetes():
    documents = list(yaml.safe_load_all((CLOUD / "kubernetes.yaml").read_text()))
    return {document["kind"]: document for document in documents}


@pytest.fixture(scope="module")
def sky():
    return yaml.safe_load((CLOUD / "skypilot.yaml").read_text())


def check_training(words):
    """Check words after torchrun's own against the command they name."""
    place = words.index("scripts/train.py")
    assert all(re.fullmatch(r"--max-restarts=\d+", word) for word in words[:place])
    args = make_parser().parse_args(words[place + 1 :])
    assert args.auto_resume and args.run_name, "a restarted run must find itself"
    return args


def test_kubernetes_objects_have_what_their_schemas_require(kubernetes):
    assert {kind: document["apiVersion"] for kind, document in kubernetes.items()} == {
        "PersistentVolumeClaim": "v1",
        "Job": "batch/v1",
    }
    for document in kubernetes.values():
        assert set(document) == {"apiVersion", "kind", "metadata", "spec"}
        assert NAME.fullmatch(document["metadata"]["name"])
    claim = kubernetes["PersistentVolumeClaim"]["spec"]
    assert claim["accessModes"] == ["ReadWriteOnce"] and claim["resources"]["requests"]["storage"].endswith("Gi")
    job = kubernetes["Job"]["spec"]
    assert set(job) <= {"backoffLimit", "template"} and isinstance(job["backoffLimit"], int)
    pod = job["template"]["spec"]
    assert pod["restartPolicy"] in ("OnFailure", "Never"), "what a Job allows"
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in pod["containers"]:
        assert {"name", "image", "command", "args", "env", "resources", "volumeMounts"} == set(container)
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes
        assert all(isinstance(entry["value"], str) for entry in container["env"])
        assert all(isinstance(word, str) for word in container["args"])
    assert (
        pod["volumes"][0]["persistentVolumeClaim"]["claimName"]
        == kubernetes["PersistentVolumeClaim"]["metadata"]["name"]
    )


def test_the_kubernetes_job_starts_a_run_with_a_gpu_for_each_process(kubernetes):
    pod = kubernetes["Job"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert (ROOT / container["command"][0]).is_file()
    assert check_training(container["args"]).task in task_table()
    env = {entry["name"]: entry["value"] for entry in container["env"]}
    assert int(env["EPO_PROCESSES"]) == container["resources"]["limits"]["nvidia.com/gpu"]
    workdir = re.search(r"^WORKDIR (\S+)", (ROOT / "docker/Dockerfile").read_text(), re.MULTILINE)[1]
    assert container["volumeMounts"][0]["mountPath"] == f"{workdir}/logs"
    assert pod["terminationGracePeriodSeconds"] >= 60, "time for an iteration and a checkpoint"


def test_the_skypilot_task_has_known_fields_and_starts_a_run(sky):
    assert set(sky) <= {"name", "resources", "envs", "workdir", "file_mounts", "setup", "run", "num_nodes"}
    assert re.fullmatch(r"\w+:\d+", sky["resources"]["accelerators"]) and isinstance(sky["resources"]["use_spot"], bool)
    assert isinstance(sky["resources"]["disk_size"], int)
    assert all(set(mount) <= {"name", "source", "store", "mode"} for mount in sky["file_mounts"].values())
    words = sky["run"].replace("\\\n", " ").split()
    assert (ROOT / words[1]).is_file()
    plain = [sky["envs"].get(word.strip('"$'), word) for word in words[2:]]
    assert check_training(plain).task in task_table()
    assert (ROOT / sky["setup"].split()[0]).is_file()
    assert next(iter(sky["file_mounts"])) in sky["setup"], "runs outlive the machine"
