#!/usr/bin/env bash
# The epo-lab launcher: finds or makes the Python environment once, then runs scripts, tests or Isaac Lab's CLI in it.
set -euo pipefail

ROOT=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
VENV=${EPO_VENV:-$ROOT/.venv}
EXTRAS=(dev viewer video envpool docs isaacsim)
SITE=lib/python3.12/site-packages
NVIDIA_INDEX=https://pypi.nvidia.com

# Without bytecode every start compiles thousands of files of torch and Isaac Lab again: 29 s instead of 11 s to the
# fifth iteration of a diagnostic.
unset PYTHONDONTWRITEBYTECODE

usage() {
  cat <<'TEXT'
usage: ./isaaclab.sh -p FILE [ARG ...]    run a Python script in the project's environment
       ./isaaclab.sh -t [PYTEST_ARG ...]  run the tests
       ./isaaclab.sh -i [EXTRA ...]       only install; extras: dev viewer video envpool docs isaacsim
       ./isaaclab.sh -h                   show this help
       ./isaaclab.sh WORD [ARG ...]       Isaac Lab's own commands: list_envs, train, play, random_agent, zero_agent, ...

The environment is the first of
  1. the active virtualenv or conda environment, if it has Isaac Lab 3.0
  2. the one ISAACLAB_PATH points to (an environment or an Isaac Lab checkout)
  3. .venv beside this file, made on first use from the pinned files in requirements/ (about 8 GB)

variables: EPO_PYTHON     the Python 3.12 to make .venv with
           EPO_VENV       another place for .venv
           ISAACLAB_PATH  an existing Isaac Lab 3.0
TEXT
}

say() { printf '%s\n' "[epo-lab] $*" >&2; }

die() {
  printf '%s\n' "isaaclab.sh: $*" >&2
  exit 2
}

# --- which Python ---------------------------------------------------------------------------------------------------

is_python312() { "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))' >/dev/null 2>&1; }

# Print a Python 3.12 that really runs; nothing if there is none (a pyenv shim may exist and still fail).
find_python312() {
  local candidate
  if [[ -n ${EPO_PYTHON:-} ]]; then
    is_python312 "$EPO_PYTHON" || die "EPO_PYTHON=$EPO_PYTHON is not a working Python 3.12; unset it or point it to one"
    printf '%s\n' "$EPO_PYTHON"
    return
  fi
  while IFS= read -r candidate; do
    if is_python312 "$candidate"; then
      printf '%s\n' "$candidate"
      return
    fi
  done < <(
    type -ap python3.12 || true
    # newest first, so that 3.12.10 comes before 3.12.9
    printf '%s\n' "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12*/bin/python3.12 | sort -rV
  )
}

# Print a uv: of the environment, of the machine, or nothing.
find_uv() {
  if [[ -x $1/bin/uv ]]; then
    printf '%s\n' "$1/bin/uv"
  else
    type -p uv || true
  fi
}

# --- which environment ----------------------------------------------------------------------------------------------

# A wheel carries the release in its version; a source checkout only in the VERSION file above its packages.
has_isaaclab() {
  compgen -G "$1/$SITE/isaaclab-3.0*.dist-info" >/dev/null && return
  [[ -x $1/bin/python ]] || return 1
  "$1/bin/python" - >/dev/null 2>&1 <<'PY'
import importlib.util, pathlib, sys

origin = pathlib.Path(importlib.util.find_spec("isaaclab").origin)
versions = [folder / "VERSION" for folder in origin.parents[1:4]]
sys.exit(not any(file.is_file() and file.read_text().startswith("3.0") for file in versions))
PY
}

# Print the prefix of an environment that somebody else made and that has Isaac Lab 3.0; nothing if there is none.
find_foreign_environment() {
  local prefix
  for prefix in "${VIRTUAL_ENV:-}" "${CONDA_PREFIX:-}"; do
    if [[ -n $prefix && ! $prefix -ef $VENV ]] && has_isaaclab "$prefix"; then
      printf '%s\n' "$prefix"
      return
    fi
  done
  [[ -n ${ISAACLAB_PATH:-} ]] || return 0
  for prefix in "$ISAACLAB_PATH" "$ISAACLAB_PATH/.venv" "$ISAACLAB_PATH/env_isaaclab" \
    "$ISAACLAB_PATH/_isaac_sim/kit/python"; do
    if has_isaaclab "$prefix"; then
      printf '%s\n' "$prefix"
      return
    fi
  done
  say "ISAACLAB_PATH=$ISAACLAB_PATH holds no environment with Isaac Lab 3.0; using $VENV"
}

# --- our own environment --------------------------------------------------------------------------------------------

# What an installed extra was made from. It differs when a pin, the packages' metadata or the checkout's place changes.
fingerprint() {
  cat "$ROOT/requirements/base.txt" "$ROOT/requirements/$1.txt" "$ROOT"/source/*/pyproject.toml \
    <(printf '%s' "$ROOT") | cksum
}

is_current() {
  [[ -x $VENV/bin/python && -d $VENV/$SITE/isaaclab && -r $VENV/epo-lab/$1 ]] &&
    [[ $(<"$VENV/epo-lab/$1") == "$(fingerprint "$1")" ]]
}

# Whether a folder is an environment that this launcher made: nothing else is ever removed.
is_ours() { [[ -f $1/pyvenv.cfg && -f $1/epo-lab/made-here ]]; }

make_venv() {
  local python uv
  is_python312 "$VENV/bin/python" && return
  if [[ -e $VENV ]]; then
    is_ours "$VENV" || die "$VENV is in the way and is no environment of epo-lab; move it or set EPO_VENV"
    say "the environment in $VENV does not run; making it anew"
    rm -rf -- "$VENV"
  fi
  python=$(find_python312)
  uv=$(find_uv "$VENV")
  if [[ -n $uv ]]; then
    say "making $VENV with ${python:-a Python 3.12 that uv downloads}"
    "$uv" venv -q --python "${python:-3.12}" "$VENV" || no_python
  elif [[ -n $python ]]; then
    say "making $VENV with $python"
    "$python" -m venv "$VENV" || die "$python cannot make an environment; install its venv module (Debian: apt install python3.12-venv) or uv"
  else
    make_venv_with_downloaded_python || no_python
  fi
  mkdir -p "$VENV/epo-lab"
  : >"$VENV/epo-lab/made-here"
}

# No uv and no Python 3.12: any Python can fetch uv, and uv fetches Python 3.12.
make_venv_with_downloaded_python() {
  local helper python
  python=$(type -p python3 || true)
  [[ -n $python ]] || return 1
  helper=$(mktemp -d)
  say "making $VENV with a Python 3.12 that uv downloads"
  "$python" -m venv "$helper" >/dev/null 2>&1 &&
    "$helper/bin/python" -m pip install -q "$(grep '^uv==' "$ROOT/requirements/base.txt")" &&
    "$helper/bin/uv" venv -q --python 3.12 "$VENV"
  local status=$?
  rm -rf -- "$helper"
  return $status
}

no_python() {
  die "no Python 3.12 found: install one (apt install python3.12 python3.12-venv, pyenv install 3.12, or uv python install 3.12) or set EPO_PYTHON to it"
}

# Show uv's progress; into a file without its list of two hundred packages.
uv_install() {
  local uv=$1
  shift
  if [[ -t 2 ]]; then
    "$uv" pip install "$@"
  else
    "$uv" pip install "$@" 2>&1 | { grep -v '^ [+~-] ' >&2 || true; }
  fi
}

# Install one extra (or base) into our environment and note what it was made from.
install_extra() {
  local extra=$1 uv
  local -a index=()
  uv=$(find_uv "$VENV")
  if [[ -z $uv ]]; then
    say "installing uv"
    "$VENV/bin/python" -m pip install -q "$(grep '^uv==' "$ROOT/requirements/base.txt")"
    uv=$VENV/bin/uv
  fi
  rm -f -- "$VENV/epo-lab/$extra"
  # isaacsim lies on NVIDIA's index, what it needs on PyPI: uv must look at both for the best match.
  [[ $extra == isaacsim ]] && index=(--extra-index-url "$NVIDIA_INDEX" --index-strategy unsafe-best-match)
  say "installing $extra: $(grep -c '^[A-Za-z]' "$ROOT/requirements/$extra.txt") pinned packages"
  uv_install "$uv" --python "$VENV/bin/python" "${index[@]}" -r "$ROOT/requirements/$extra.txt"
  if [[ $extra == base ]]; then
    say "installing epo_lab and epo_tasks (editable)"
    "$uv" pip install -q --python "$VENV/bin/python" --no-deps -e "$ROOT/source/epo_lab" -e "$ROOT/source/epo_tasks"
  fi
  mkdir -p "$VENV/epo-lab"
  fingerprint "$extra" >"$VENV/epo-lab/$extra"
}

# Bring base and the named extras up to date; one process at a time.
ensure() {
  local extra stale=0
  for extra in base "$@"; do
    is_current "$extra" || stale=1
  done
  ((stale)) || return 0
  case $ROOT/ in
    "$(readlink -m -- "$VENV")"/*) die "$VENV holds this checkout, so it cannot be its environment; set EPO_VENV to another place" ;;
  esac
  mkdir -p -- "$(dirname -- "$VENV")" 2>/dev/null || true
  : 2>/dev/null >>"$VENV.lock" || die "cannot write beside $VENV; make its folder writable or set EPO_VENV to another place"
  exec 9>>"$VENV.lock"
  if command -v flock >/dev/null && ! flock -n 9; then
    say "waiting for another start that is setting up $VENV"
    flock 9
  fi
  is_current base || make_venv
  # extras that are already there follow the base when it changes
  for extra in base "${EXTRAS[@]}"; do
    if [[ $extra == base || -e $VENV/epo-lab/$extra || " $* " == *" $extra "* ]]; then
      is_current "$extra" || install_extra "$extra"
    fi
  done
  exec 9>&-
}

# --- somebody else's environment ------------------------------------------------------------------------------------

pip_install() { # into the environment $1; the rest are pip's arguments
  local prefix=$1 uv
  shift
  uv=$(find_uv "$prefix")
  if [[ -n $uv ]]; then
    "$uv" pip install -q --python "$prefix/bin/python" "$@"
  else
    "$prefix/bin/python" -m pip install -q "$@"
  fi
}

# Our two packages must be known there; Isaac Lab itself is left alone.
ensure_foreign() {
  local prefix=$1 extra
  shift
  if [[ ! -r $prefix/epo-lab/packages || $(<"$prefix/epo-lab/packages") != "$ROOT" ]]; then
    say "installing epo_lab and epo_tasks (editable) into $prefix"
    pip_install "$prefix" --no-deps -e "$ROOT/source/epo_lab" -e "$ROOT/source/epo_tasks" ||
      die "cannot install epo_lab into $prefix; make it writable or deactivate it to use .venv"
    mkdir -p "$prefix/epo-lab"
    printf '%s\n' "$ROOT" >"$prefix/epo-lab/packages"
  fi
  for extra in "$@"; do
    say "installing $extra into $prefix"
    if [[ $extra == isaacsim ]]; then
      pip_install "$prefix" --extra-index-url "$NVIDIA_INDEX" -r "$ROOT/requirements/isaacsim.txt"
    else
      pip_install "$prefix" -r <(grep -v '^isaaclab' "$ROOT/requirements/$extra.in")
    fi
  done
}

# --- the command line -----------------------------------------------------------------------------------------------

PREFIX=$(find_foreign_environment)

# Make sure that the environment has what is named, and point PREFIX to it.
prepare() {
  if [[ -n $PREFIX ]]; then
    ensure_foreign "$PREFIX"
    return
  fi
  ensure "$@"
  PREFIX=$VENV
}

install() {
  local extra
  local -a extras
  read -ra extras <<<"${*//,/ }"
  for extra in "${extras[@]}"; do
    [[ " ${EXTRAS[*]} " == *" $extra "* ]] || die "unknown extra '$extra'; there are: ${EXTRAS[*]}"
  done
  # the tests play EnvPool's tasks too
  [[ " ${extras[*]} " != *" dev "* ]] || extras+=(envpool)
  if [[ -n $PREFIX ]]; then
    ensure_foreign "$PREFIX" base "${extras[@]}"
  else
    ensure "${extras[@]}"
  fi
  say "ready: ${PREFIX:-$VENV}"
}

run_tests() {
  prepare dev envpool
  "$PREFIX/bin/python" -c 'import pytest, pytest_timeout, xdist' 2>/dev/null ||
    die "pytest is missing in $PREFIX; add it with: ./isaaclab.sh -i dev"
  cd -- "$ROOT"
  exec "$PREFIX/bin/python" -m pytest "$@"
}

case ${1:-} in
  -p | --python)
    shift
    prepare
    exec "$PREFIX/bin/python" "$@"
    ;;
  -t | --test)
    shift
    run_tests "$@"
    ;;
  -i | --install)
    shift
    install "$@"
    ;;
  -h | --help)
    usage
    ;;
  '')
    usage >&2
    exit 2
    ;;
  -*)
    die "unknown option '$1'; see ./isaaclab.sh -h"
    ;;
  list_envs)
    prepare
    "$PREFIX/bin/python" -m isaaclab "$@"
    say "scripts/ also take EnvPool/<id>, for example --task EnvPool/HalfCheetah-v4 (docs/envpool.md), and Epo-Diag-*"
    ;;
  *)
    prepare
    exec "$PREFIX/bin/python" -m isaaclab "$@"
    ;;
esac
