# /// script
# requires-python = ">=3.12"
# dependencies = ["kubernetes-validate==1.37.0", "skypilot==0.14.1"]
# ///
"""Check files for Kubernetes and SkyPilot with their own schemas:

.venv/bin/uv run --script tools/check_cloud.py docker/cloud/kubernetes.yaml docker/cloud/skypilot.yaml

Kubernetes' official ones come with kubernetes-validate, and a field that they do not know is an error; SkyPilot reads
its task as it would before a launch. The two are a hundred packages, so they live in an environment of uv's and are no
dependency of ours.
"""

import os
import sys
import tempfile
from pathlib import Path

VERSIONS = ("1.25.0", "1.31.0", "1.37.0")
"""Versions of Kubernetes; the first and the last that kubernetes-validate 1.37.0 has."""


def check_kubernetes(documents: list) -> list[str]:
    """Return what the schemas say against some objects."""
    import kubernetes_validate

    problems = []
    for document in documents:
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(document, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                place = ".".join(map(str, error.absolute_path))
                problems.append(f"Kubernetes {version}, {document.get('kind')} {place}: {error.message[:200]}")
            except kubernetes_validate.SchemaNotFoundError as error:
                problems.append(error.message)
    return problems


def check_skypilot(path: Path) -> list[str]:
    """Return what SkyPilot says against a task."""
    # it notes things in the user's folder
    with tempfile.TemporaryDirectory() as home:
        os.environ["HOME"] = home
        import sky

        try:
            sky.Task.from_yaml(str(path))
        except Exception as error:  # its own kinds are many
            return [f"SkyPilot {sky.__version__}: {' '.join(str(error).split())[:300]}"]
    return []


def main(paths: list[Path]) -> int:
    """Check all files; return 1 if one is wrong."""
    import yaml

    wrong = 0
    for path in paths:
        documents = list(yaml.safe_load_all(path.read_text()))
        of_kubernetes = all("apiVersion" in document for document in documents)
        problems = check_kubernetes(documents) if of_kubernetes else check_skypilot(path)
        kind = "Kubernetes " + ", ".join(VERSIONS) if of_kubernetes else "SkyPilot"
        print("\n".join(problems) or f"{path}: valid ({kind})")
        wrong += bool(problems)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
