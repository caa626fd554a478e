#!/bin/bash
# A study in shards, with a job script only: each task of the array makes its part of the runs.
#
#     sbatch --array=1-8 examples/slurm-shards.sh
#     backcast report results        # when all are done
#
#SBATCH --job-name=backcast
#SBATCH --cpus-per-task=4
#SBATCH --time=60
backcast sweep examples/step-sizes.toml --out results --quiet \
  --workers "${SLURM_CPUS_PER_TASK:-1}" --shard "${SLURM_ARRAY_TASK_ID:-1}/${SLURM_ARRAY_TASK_COUNT:-1}"
