#!/bin/bash
#SBATCH --job-name=evalstone
#SBATCH --array=1-16
#SBATCH --cpus-per-task=1
#SBATCH --mem=2G
#SBATCH --time=04:00:00
#SBATCH --signal=B:TERM@60
#SBATCH --requeue
#SBATCH --output=evalstone-%A-%a.log
#
# Scores a dataset as a SLURM array, one shard a task, into a folder that all nodes write to. Then merge it:
#
#   job=$(sbatch --parsable slurm.sh data.jsonl results --scorer exact_match)
#   sbatch --dependency=afterok:$job --wrap "evalstone merge results"
#
# Submit it again for tasks that failed, such as with --array=3,7: finished blocks stay. SHARDS has to be the number of
# all shards, also then.
set -eu
data=$1
out=$2
shift 2
exec evalstone run "$data" "$@" --shard "$SLURM_ARRAY_TASK_ID/${SHARDS:-16}" --out "$out"
