#!/usr/bin/env bash
# Check everything in this folder that can be checked here.
#   docker/check.sh lint      Dockerfile and scripts (hadolint and shellcheck of the dev extra)
#   docker/check.sh config    the compose file, resolved by Compose itself (no engine needed)
#   docker/check.sh build     build the image, with Docker's engine; without one with buildah, as root, on an Ubuntu 24.04
#                             from debootstrap (30 GB)
#   docker/check.sh run       what was built: train in it as an ordinary user, stop, resume, film, look at its health
# Without arguments: lint and config.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
TASK=Epo-Diag-Deceptive-v0
WORK=${EPO_CHECK_DIR:-/var/tmp/epo-lab-check}
MIRROR=${EPO_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}

say() { printf '%s\n' "[check] $*"; }
die() {
  printf '%s\n' "check.sh: $*" >&2
  exit 2
}
tool() { # print where a tool of the dev extra is
  command -v "$1" || { [[ -x .venv/bin/$1 ]] && echo ".venv/bin/$1"; } || die "$1 is missing: ./isaaclab.sh -i dev"
}

lint() {
  "$(tool hadolint)" docker/Dockerfile
  "$(tool shellcheck)" docker/*.sh docker/cluster/*.sh docker/cluster/*.sbatch
  say "Dockerfile and scripts are clean"
}

config() {
  local -a compose
  local services
  if docker compose version >/dev/null 2>&1; then
    compose=(docker compose)
  elif [[ $(docker-compose version --short 2>/dev/null) == 2.* ]]; then
    compose=(docker-compose)
  else
    die "Compose is missing: install Docker's compose plugin or docker-compose 2"
  fi
  for profile in cpu gpu; do
    services=$("${compose[@]}" -f docker/compose.yaml --profile "$profile" config --services) || die "compose.yaml is not valid"
    say "$profile: $(sort <<<"$services" | xargs)"
  done
}

# --- build: with an engine, or without ------------------------------------------------------------------------------

with_docker() {
  build_image() { docker build -f docker/Dockerfile -t epo-lab:check .; }
  inside() { # run a command of the image, with a folder for logs and one for caches
    docker run --rm --user 1000:1000 -v "$WORK/logs:/workspace/epo-lab/logs" -v "$WORK/cache:/cache" \
      --entrypoint "$1" epo-lab:check "${@:2}"
  }
}

with_buildah() {
  ((EUID == 0)) || die "there is no Docker engine here; without one this needs root"
  for name in buildah debootstrap; do
    command -v $name >/dev/null || die "$name is missing: apt-get install $name"
  done
  BUILDAH=(buildah --root "$WORK/storage" --runroot "$WORK/run")
  build_image() {
    base
    "${BUILDAH[@]}" bud --isolation chroot --layers=false --format docker --build-arg BASE_IMAGE=localhost/ubuntu \
      -f docker/Dockerfile -t epo-lab:check .
  }
  inside() {
    [[ -n ${CONTAINER:-} ]] || CONTAINER=$("${BUILDAH[@]}" from localhost/epo-lab:check)
    "${BUILDAH[@]}" run --isolation chroot --user 1000:1000 -v "$WORK/logs:/workspace/epo-lab/logs" \
      -v "$WORK/cache:/cache" "$CONTAINER" -- "$@"
  }
}

# In place of the pinned base image: the same distribution, and this machine's certificates.
base() {
  local container
  "${BUILDAH[@]}" inspect --type image localhost/ubuntu >/dev/null 2>&1 && return
  if [[ ! -e $WORK/ubuntu/etc/os-release ]]; then
    local -a trust=(--no-check-gpg)
    [[ -e /usr/share/keyrings/ubuntu-archive-keyring.gpg ]] && trust=(--keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg)
    say "debootstrap of Ubuntu 24.04"
    debootstrap "${trust[@]}" --variant=minbase --components=main,universe noble "$WORK/ubuntu" "$MIRROR" gutsy >"$WORK/base.log"
  fi
  container=$("${BUILDAH[@]}" from scratch)
  "${BUILDAH[@]}" add -q "$container" "$WORK/ubuntu" / >/dev/null
  "${BUILDAH[@]}" copy -q "$container" /etc/ssl/certs/ca-certificates.crt /etc/ssl/host.crt >/dev/null
  "${BUILDAH[@]}" config --env SSL_CERT_FILE=/etc/ssl/host.crt --env PIP_CERT=/etc/ssl/host.crt "$container"
  "${BUILDAH[@]}" commit -q --rm "$container" localhost/ubuntu >/dev/null
}

expect() { # expect CODE COMMAND...: run in the image and compare the exit code
  local code=0
  inside "${@:2}" >"$WORK/out.txt" 2>&1 || code=$?
  [[ $code == "$1" ]] || {
    tail -20 "$WORK/out.txt" >&2
    die "'${*:2}' ended with code $code instead of $1"
  }
  say "code $1: ${*:2}"
}

with_engine() { # with_engine COMMAND...
  mkdir -p "$WORK"
  if docker info >/dev/null 2>&1; then with_docker; else with_buildah; fi
  "$@"
}

build() {
  local begin=$SECONDS
  build_image
  say "built in $((SECONDS - begin)) s"
}

run() {
  rm -rf "$WORK/logs" "$WORK/cache"
  install -d -m 1777 "$WORK/logs" "$WORK/cache" "$WORK/cache/epo-lab"
  local -a train=(docker/entrypoint.sh -p scripts/train.py --task "$TASK" --num_envs 64)
  expect 0 docker/entrypoint.sh -h
  expect 2 docker/entrypoint.sh -p scripts/train.py --task Epo-Nonsense-v0
  # SIGTERM to the entrypoint, as `docker stop` sends it, once there is something to lose
  # shellcheck disable=SC2016
  expect 143 bash -c '"$@" & until compgen -G "logs/rsl_rl/*/*/model_*.pt"; do sleep 1; done
    docker/healthcheck.sh && kill -TERM $! && wait $!' bash "${train[@]}" --max_iterations 100000
  local last
  last=$(find "$WORK/logs" -name 'model_*.pt' | sed 's/.*model_\([0-9]*\).pt/\1/' | sort -n | tail -n 1)
  expect 0 "${train[@]}" --resume --max_iterations $((last + 5))
  expect 0 docker/entrypoint.sh -p scripts/train.py --task Epo-Anymal-Flat-v0 --num_envs 8 --max_iterations 1
  expect 0 docker/entrypoint.sh -p scripts/play.py --task Epo-Anymal-Flat-v0 --num_envs 1 --video --video_length 5
  expect 1 env EPO_STALL_SECONDS=-1 bash -c 'exec 3>logs/events.out.tfevents.1; touch logs/curves.csv; docker/healthcheck.sh'
  chown 0:0 "$WORK/cache/epo-lab"
  chmod 755 "$WORK/cache/epo-lab"
  expect 2 docker/entrypoint.sh -h
  say "the image works"
}

for step in "${@:-lint}"; do
  case $step in
    lint) lint ;;
    config) config ;;
    build | run) with_engine "$step" ;;
    *) die "unknown step '$step'; there are: lint config build run" ;;
  esac
done
(($#)) || config
