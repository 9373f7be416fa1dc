#!/usr/bin/env bash
# The launcher inside of an Apptainer image: takes what ./isaaclab.sh takes.
#   EPO_IMAGE=epo-lab.sif docker/cluster/apptainer.sh -p scripts/train.py --task Epo-Anymal-Flat-v0
# The checkout of the host runs with the image's environment; runs and caches lie on the host.
set -euo pipefail
: "${EPO_IMAGE:?is not set: name the image, for example EPO_IMAGE=epo-lab.sif}"
root=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../..
root=$(realpath "$root")
cache=${EPO_CACHE_DIR:-$HOME/.cache/epo-lab-container}
mkdir -p "$cache/epo-lab" "$cache/warp" "$root/logs"
options=()
# the driver's libraries of the host
[[ -e /dev/nvidiactl ]] && options+=(--nv)
# environments of the host mean nothing in the image
unset VIRTUAL_ENV CONDA_PREFIX ISAACLAB_PATH PYTHONPATH
exec "${APPTAINER:-apptainer}" exec --no-home --env "HOME=/home/epo,USER=${USER:-epo}" \
  --bind "$root:/workspace/epo-lab" --bind "$cache:/cache" --pwd /workspace/epo-lab "${options[@]}" \
  "$EPO_IMAGE" docker/entrypoint.sh "$@"
