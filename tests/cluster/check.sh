#!/usr/bin/env bash
# The job scripts of docker/cluster on a real Slurm of two nodes, which this starts on this machine and stops again:
#   sudo tests/cluster/check.sh [reference] [array] [limit] [nodes] [sweep]        (Debian, Ubuntu: apt-get install slurm-wlm munge)
# Without arguments all of it:
# 1. an array of two seeds is preempted by another job, is queued again and ends bit-identical to runs nobody disturbed
# 2. the warning before a time limit does the same
# 3. a run of two nodes with torchrun is stopped, queued again and goes on
# 4. a sweep in two parts fills one table
set -euo pipefail
HERE=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
ROOT=$(realpath "$HERE/../..")
TASK=(--task Epo-Diag-Deceptive-v0 --num_envs 64 agent.save_interval=10)
ITERATIONS=${EPO_CHECK_ITERATIONS:-200}
LIMIT=${EPO_CHECK_LIMIT:-600} # seconds that any step may take
# shellcheck source=tests/cluster/slurm.sh
source "$HERE/slurm.sh"

((EUID == 0)) || { echo "check.sh: needs root, to start Slurm" >&2; exit 2; }
for tool in slurmctld slurmd munged; do
  type -p "$tool" >/dev/null || { echo "check.sh: $tool is missing: apt-get install slurm-wlm munge" >&2; exit 2; }
done

say() { printf '%s\n' "[check $((SECONDS))s] $*"; }
die() {
  printf '%s\n' "check.sh: $*" >&2
  tail -n 15 "$WORK"/project/*.out >&2 || true
  exit 1
}
wait_for() { # wait_for WHAT COMMAND...
  local end=$((SECONDS + LIMIT)) what=$1
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || die "waited in vain for $what"
    sleep 0.5
  done
}
field() { scontrol show job "$1" | grep -o "$2=[^ ]*" | head -n 1 | cut -d= -f2; }
is_state() { [[ $(field "$1" JobState) == "$2" ]]; }
requeued() { (($(field "$1" Restarts) >= $2)) && is_state "$1" PENDING; }
saved() { compgen -G "logs/rsl_rl/*/*_$1/model_20.pt"; }
# a job that was queued again waits two minutes otherwise
release() { scontrol update JobId="$1" StartTime=now; }
same() { "$PYTHON" "$HERE/same.py" logs/rsl_rl/diag_deceptive/*_"$1" logs/rsl_rl/diag_deceptive/*_"$2"; }
seed_job() { # seed_job RUN SEEDS: submit the array
  EPO_RUN=$1 sbatch --parsable --array="$2" --cpus-per-task=1 --time=30 --nodelist=node1 docker/cluster/train.sbatch \
    "${TASK[@]}" --max_iterations "$ITERATIONS"
}

export OMP_NUM_THREADS=1
WORK=$(mktemp -d)
trap 'stop_slurm "$WORK/slurm"; rm -rf "$WORK"' EXIT
# a project folder with logs of its own
mkdir "$WORK/project"
ln -s "$ROOT"/{isaaclab.sh,scripts,config,docker} "$WORK/project/"
cd "$WORK/project"
./isaaclab.sh -i
PYTHON=$(./isaaclab.sh -p -c 'import sys; print(sys.executable)')
start_slurm "$WORK/slurm"
wait_for "the nodes" sh -c 'sinfo -h -t idle -o %D | grep -qx 2'
say "Slurm of two nodes is up: $(sinfo --version)"

reference() {
  for seed in 0 1; do
    ./isaaclab.sh -p scripts/train.py "${TASK[@]}" --max_iterations "$ITERATIONS" --seed $seed --run_name "whole-seed$seed" >/dev/null &
  done
  wait
  say "reference runs of two seeds are done"
}

array() {
  job=$(seed_job preempted 0-1)
  for seed in 0 1; do wait_for "a checkpoint of seed $seed" saved "preempted-seed$seed"; done
  say "job $job runs: preempting it"
  sbatch --parsable --partition=high --nodelist=node1 --exclusive --output=/dev/null --wrap 'sleep 3' >/dev/null
  for seed in 0 1; do wait_for "requeueing of seed $seed" requeued "${job}_$seed" 1; done
  say "both seeds are queued again"
  for seed in 0 1; do release "${job}_$seed"; done
  for seed in 0 1; do
    wait_for "the end of seed $seed" is_state "${job}_$seed" COMPLETED
    same "whole-seed$seed" "preempted-seed$seed"
  done
  say "1. preempted, queued again, resumed: both seeds equal the undisturbed runs bit by bit"
}

limit() {
  job=$(seed_job limited 0)
  wait_for "a checkpoint" saved limited-seed0
  scancel --signal=TERM --batch "${job}_0" # what --signal=B:TERM@180 does before the time limit
  wait_for "requeueing" requeued "${job}_0" 1
  release "${job}_0"
  wait_for "the end" is_state "${job}_0" COMPLETED
  same whole-seed0 limited-seed0
  say "2. warned before its time limit: the same"
}

nodes() {
  # the nodes have no names that can be looked up
  job=$(EPO_RUN=nodes EPO_PROCESSES=1 EPO_RENDEZVOUS=localhost:29555 sbatch --parsable --nodes=2 --cpus-per-task=1 --time=30 \
    docker/cluster/train_multinode.sbatch "${TASK[@]}" --max_iterations 100)
  wait_for "a checkpoint of two nodes" saved nodes
  scancel --signal=TERM --batch "$job"
  wait_for "requeueing" requeued "$job" 1
  release "$job"
  wait_for "the end" is_state "$job" COMPLETED
  grep -q "2 processes" "epo-$job.out" || die "two nodes did not train together"
  [[ -e $(echo logs/rsl_rl/*/*_nodes/model_99.pt) ]] || die "the run of two nodes did not finish"
  say "3. two nodes with torchrun: stopped, queued again, finished"
}

sweep() {
  local options=(--agents epo --tasks Epo-Diag-Smooth-v0 --seeds 1 --num_envs 64 --max_iterations 4 --output sweep)
  options+=("agent.algorithm.evolution.gamma=0.1,0.3")
  job=$(sbatch --parsable --array=0-1 --cpus-per-task=1 --time=30 docker/cluster/compare.sbatch "${options[@]}")
  for part in 0 1; do wait_for "part $part" is_state "${job}_$part" COMPLETED; done
  ./isaaclab.sh -p scripts/compare.py "${options[@]}" >sweep.txt
  for value in 0.1 0.3; do grep -q "$value" sweep.txt || die "no row of $value in $(cat sweep.txt)"; done
  for part in 0 1; do grep -q "^1/1 .* trained$" "epo-compare-${job}_$part.out" || die "part $part trained nothing"; done
  say "4. a sweep of two parts fills one table"
}

for step in "${@:-reference}"; do "$step"; done
if (($# == 0)); then
  array
  limit
  nodes
  sweep
fi
