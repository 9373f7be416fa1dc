#!/usr/bin/env bash
# Healthy unless a training run that some process here has open wrote no iteration for EPO_STALL_SECONDS (15 minutes).
set -euo pipefail
limit=${EPO_STALL_SECONDS:-900}
now=$(date +%s)
# the logs may be shared with other containers, so only what our own processes have open counts
while IFS= read -r events; do
  curves=$(dirname "$events")/curves.csv
  [[ -e $curves ]] || continue
  age=$((now - $(stat -c %Y "$curves")))
  if ((age > limit)); then
    echo "no iteration for $age s in $(dirname "$curves")"
    exit 1
  fi
done < <(find /proc/[0-9]*/fd -lname '*/events.out.tfevents.*' -printf '%l\n' 2>/dev/null | sort -u)
echo healthy
