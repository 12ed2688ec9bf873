#!/bin/sh
# Scores a dataset in one process for each core of this machine, and merges the results.
#
#   examples/scale/shards.sh data.jsonl results --scorer exact_match
#   SHARDS=4 examples/scale/shards.sh …
#
# Run it again after an interruption: finished blocks stay.
set -eu
data=$1
out=$2
shift 2
shards=${SHARDS:-$(getconf _NPROCESSORS_ONLN)}

processes=
trap 'kill $processes 2>/dev/null || :' INT TERM HUP # SIGINT doesn't reach what a script started in the background
for shard in $(seq "$shards"); do
  evalstone run "$data" "$@" --shard "$shard/$shards" --out "$out" &
  processes="$processes $!"
done

status=0
for process in $processes; do
  wait "$process" || status=$?
done
if [ "$status" -ne 0 ]; then
  wait # a signal ends the wait above
  exit "$status"
fi
evalstone merge "$out"
