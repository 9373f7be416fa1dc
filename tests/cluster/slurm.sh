#!/usr/bin/env bash
# Sourced: a Slurm of two nodes on this machine, in a folder of its own. Needs root, slurm-wlm and munge.

start_slurm() { # start_slurm FOLDER
  local folder=$1 name
  mkdir -p "$folder"/{munge,state}
  chmod 700 "$folder/munge"
  export SLURM_CONF=$folder/slurm.conf
  head -c 64 /dev/urandom >"$folder/munge/key"
  chmod 400 "$folder/munge/key"
  munged --key-file="$folder/munge/key" --socket="$folder/munge.socket" --pid-file="$folder/munge/pid" \
    --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" --force
  cat >"$SLURM_CONF" <<TEXT
ClusterName=epo
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CryptoType=crypto/munge
SlurmctldPort=16817
SlurmctldPidFile=$folder/slurmctld.pid
SlurmctldLogFile=$folder/slurmctld.log
StateSaveLocation=$folder/state
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmdLogFile=$folder/slurmd-%n.log
SlurmdSpoolDir=$folder/spool-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=1,sched_interval=2,bf_interval=2,requeue_delay=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=5
MinJobAge=3600
JobRequeue=1
NodeName=node1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=16818 CPUs=2
NodeName=node2 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=16819 CPUs=2
PartitionName=low Nodes=node1,node2 Default=YES PriorityTier=1 GraceTime=60
PartitionName=high Nodes=node1,node2 PriorityTier=10 PreemptMode=OFF
TEXT
  slurmctld
  for name in node1 node2; do
    mkdir -p "$folder/spool-$name"
    slurmd -N "$name"
  done
}

stop_slurm() { # only what start_slurm started
  local file pid
  scancel --user=root 2>/dev/null || true
  for file in "$1"/slurmd-*.pid "$1"/slurmctld.pid "$1"/munge/pid; do
    [[ -e $file ]] || continue
    pid=$(<"$file")
    kill "$pid" 2>/dev/null || continue
    for _ in {1..20}; do
      [[ $(ps -o stat= -p "$pid") == [^Z]* ]] || break
      sleep 0.5
    done
  done
}
