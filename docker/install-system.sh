#!/usr/bin/env bash
# The first layer: system packages, the user, and folders that any user may write to. Runs as root on Ubuntu 24.04.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
uid=${EPO_UID:-1000} gid=${EPO_GID:-1000}

# git: a run folder notes the commit
packages=(ca-certificates git)
# an Isaac Lab image brings its own Python, and the libraries that USD and the viewers load
if [[ -z ${ISAACLAB_PATH:-} ]]; then
  packages+=(python3.12 python3.12-venv libegl1 libgl1 libglib2.0-0t64 libgomp1 libx11-6 libxext6 libxrender1 libxt6t64)
fi

# Debian's images delete every package after it is installed; here the folder is a cache mount
rm -f /etc/apt/apt.conf.d/docker-clean
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${packages[@]}"

getent group "$gid" >/dev/null || groupadd --gid "$gid" epo
getent passwd "$uid" >/dev/null || useradd --uid "$uid" --gid "$gid" --no-create-home --shell /bin/bash epo
# Compose may start the container as any user id, so that files in bind mounts belong to whoever started it.
install -d -m 1777 /home/epo /cache /cache/epo-lab /cache/warp
# a checkout that is mounted belongs to somebody else
git config --system --add safe.directory '*'
