#!/usr/bin/env bash
# Write the pinned *.txt files anew from the *.in files: one joint resolution, so that every extra fits the base.
set -euo pipefail
cd "$(dirname "$0")"
uv=$(command -v uv || echo ../.venv/bin/uv)
extras=(dev viewer video envpool docs)
lock() { "$uv" pip compile -q --universal --python-version 3.12 --no-header --no-annotate --no-emit-index-url "$@"; }

joint=$(mktemp --suffix=.txt)
trap 'rm -f "$joint"' EXIT
lock base.in "${extras[@]/%/.in}" -o "$joint"
for name in base "${extras[@]}"; do
  lock --upgrade "$name.in" -c "$joint" -o "$name.txt"
done
