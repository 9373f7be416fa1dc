#!/usr/bin/env bash
# Sourced by the job scripts: run training as a job step and queue the job again if it was told to stop.
# LAUNCH starts Python on a node: the launcher, or with EPO_IMAGE=FILE.sif the same inside of an Apptainer image.
export LAUNCH=./isaaclab.sh
[[ -z ${EPO_IMAGE:-} ]] || LAUNCH=docker/cluster/apptainer.sh
STOPPED=143
# in an array SLURM_JOB_ID can be the number of the whole array, and would stop and requeue all of it
JOB=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
JOB=${JOB:-${SLURM_JOB_ID:?is not set: submit the job script with sbatch}}

# Slurm warns the batch shell before the time limit (--signal=B:TERM) and the steps when it preempts. Either way training
# finishes its iteration, saves, and ends with code 143.
run_or_requeue() {
  local step code=0
  trap 'scancel --signal=TERM "$JOB"' TERM
  "$@" &
  step=$!
  wait "$step" || code=$?
  # a trap interrupts wait
  while kill -0 "$step" 2>/dev/null; do
    code=0
    wait "$step" || code=$?
  done
  if ((code == STOPPED)); then
    echo "[epo-lab] stopped after saving; queueing job $JOB again"
    # Slurm ends this shell now; it only goes on if the job may not be requeued
    scontrol requeue "$JOB" && sleep 60
  fi
  exit "$code"
}
