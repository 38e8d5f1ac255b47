#!/usr/bin/env bash
# Everything of the paper on a machine that is lent for minutes: one run that goes on from call to call.
#
#   python -m glasshouse_experiments.source_commit     # before the tree is copied there: a copy has no .git
#   experiments/on_device.sh FOLDER [OPTION ...]       # there; options of `python -m glasshouse_experiments`
#
# The first call starts `reproduce all` in a session of its own; each call, the first too, waits LIMIT seconds for
# it. FOLDER gets results.tgz, written again every EACH (30) seconds: tables with their provenance, and log.txt; and at the end
# of a call, in pieces (pools.00, ...), one tgz of the scores and models made since the last call, up to 60 MiB.
# PYTHONPATH needs src, experiments and what Glasshouse imports, in a folder that no call replaces; GLASSHOUSE_DATA the
# data. SCRATCH keeps models, scores and tables between calls; tables in SCRATCH/results and models and scores in
# SCRATCH/pools before the first call are not made again.
set -u
out=$(mkdir -p "$1" && cd "$1" && pwd)
shift
scratch=${SCRATCH:-/tmp/glasshouse-all}
limit=${LIMIT:-560}
export PYTHONUNBUFFERED=1
if [ ! -e "$scratch/started" ]; then
    mkdir -p "$scratch/results"
    touch "$scratch/log.txt"
    date +%s >"$scratch/started"
    if command -v nvidia-cuda-mps-control >/dev/null; then # without it, processes take turns on a GPU
        export CUDA_MPS_PIPE_DIRECTORY=$scratch/mps CUDA_MPS_LOG_DIRECTORY=$scratch/mps
        mkdir -p "$scratch/mps" && nvidia-cuda-mps-control -d
    fi
    # the end is written by the run itself, because no call may be there to see it
    setsid nohup bash -c '
        "$1" -m glasshouse_experiments --out "$2/results" --pools "$2/pools" "${@:3}" >"$2/log.txt" 2>&1
        echo "exit $? after $(($(date +%s) - $(cat "$2/started"))) s" >>"$2/log.txt"
        touch "$2/ended"' run "${PYTHON:-python3}" "$scratch" "$@" >/dev/null 2>&1 </dev/null &
    echo $! >"$scratch/session" # kill -- -$(cat SCRATCH/session) ends it
fi
while :; do
    tar -czf "$out/.results" -C "$scratch" results log.txt && mv "$out/.results" "$out/results.tgz"
    [ -e "$scratch/ended" ] || [ $((SECONDS + ${EACH:-30})) -gt "$limit" ] && break
    sleep "${EACH:-30}"
done
(
    cd "$scratch" || exit
    [ -e brought ] || cp -p started brought
    touch next
    made() { find pools -newer brought -type f ! -name '.*' "$@" -print0 2>/dev/null; }
    (made -path '*/scores/*' && made ! -path '*/scores/*') | tar -cz --null --files-from=- 2>/dev/null |
        head -c 60M | split -b 15M -d - "$out/pools."
    mv next brought
)
echo "$(($(date +%s) - $(cat "$scratch/started"))) s after the start; finished tables:"
(cd "$scratch/results" && find . -mindepth 2 -newer ../started -name '*.json' | sort | xargs -r grep -H '"seconds"\|"training_seconds"' | tr -d ' \n' | sed 's/\.\//\n/g')
tail -n 20 "$scratch/log.txt"
