#!/bin/sh
# A sweep as a Slurm job array: task I of N runs shard I/N into DATABASE.shardI.
#
#   sbatch --array=1-20 slurm-array.sh ranks.sqlite -c configs/u50-2enc.ini --over tt.rank=4:24:4 --over engine.cols=8,12,16
#   contraflow merge --db ranks.sqlite ranks.sqlite.shard*        # when all tasks are done
#
# The same sbatch command again goes on where tasks were stopped (time limit, node failure).
#SBATCH --job-name=contraflow-sweep
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
#SBATCH --signal=TERM@30
set -eu
database=${1:?usage: sbatch --array=1-N slurm-array.sh DATABASE SWEEP-OPTIONS...}
shift
shard=${SLURM_ARRAY_TASK_ID:?run as a job array: sbatch --array=1-N}
exec "${CONTRAFLOW:-contraflow}" sweep "$@" --jobs "${SLURM_CPUS_PER_TASK:-1}" \
    --shard "$shard/${SLURM_ARRAY_TASK_COUNT:?}" --db "$database.shard$shard"
