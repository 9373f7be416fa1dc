#!/usr/bin/env bash
# The second layer: the Python environment, made by the launcher from the pinned files, for the extras in $EXTRAS.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# uv's cache is a mount of its own: files cannot be linked from there; the user of the image cannot write bytecode
export UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1
# the packages themselves come with a later layer; an editable installation only needs their folders
mkdir -p source/epo_lab/epo_lab source/epo_tasks/epo_tasks
read -ra extras <<<"${EXTRAS:-}"
./isaaclab.sh -i "${extras[@]}"
rm -rf /root/.cache/pip
