#!/usr/bin/env bash
# torchrun on one node of a job: EPO_PROCESSES processes here, which meet the others at EPO_RENDEZVOUS.
# torchrun hands SIGTERM on to its processes (for 30 s, then it kills them) but ends with code 1: here it is 143 again.
set -uo pipefail
stopped=
trap 'stopped=1' TERM
"${LAUNCH:-./isaaclab.sh}" -p -m torch.distributed.run --nnodes "${SLURM_NNODES:-1}" --node_rank "${SLURM_NODEID:-0}" \
  --nproc_per_node "$EPO_PROCESSES" --rdzv_backend c10d --rdzv_endpoint "$EPO_RENDEZVOUS" \
  --rdzv_id "${SLURM_JOB_ID:-0}-${SLURM_RESTART_COUNT:-0}" "$@" &
child=$!
code=0
wait "$child" || code=$?
while kill -0 "$child" 2>/dev/null; do
  code=0
  wait "$child" || code=$?
done
[[ -z $stopped ]] || exit 143
exit "$code"
