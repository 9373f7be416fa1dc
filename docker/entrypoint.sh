#!/usr/bin/env bash
# Everything after the image's name goes to the launcher, as on any machine: -p scripts/train.py ..., -t, list_envs, ...
# A shell is a shell.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for folder in "${EPO_CACHE:-/cache}" logs; do
  if [[ -e $folder && ! -w $folder ]]; then
    printf '%s\n' "entrypoint: user $(id -u):$(id -g) cannot write to $(realpath "$folder"): make the mounted folder" \
      "writable for it, or start as its owner (EPO_UID and EPO_GID with compose, --user with docker)" | paste -sd' ' >&2
    exit 2
  fi
done

# exec: signals reach Python itself, which saves a checkpoint and ends with code 143 when the container is stopped
case ${1:-} in
  bash | sh) exec "$@" ;;
  *) exec ./isaaclab.sh "$@" ;;
esac
