#!/usr/bin/env bash
# The paper's cells that need a GPU or many cores, in one call on a machine that is lent for minutes.
#
#   python -m glasshouse_experiments.source_commit     # before the tree is copied there: a copy has no .git
#   experiments/on_device.sh FOLDER [LANE ...]         # there; lanes: clock models chains counts (all by default)
#
# FOLDER gets results.tgz, written again after every step, with a log of each step in it. PYTHONPATH needs src, experiments and
# what Glasshouse imports; GLASSHOUSE_DATA the data. A step that runs out of its time is stopped, and the next begins.
# Times are measured in the lane `clock`, with nothing beside it. The other lanes run side by side: `models` needs the GPU
# and little else, `chains` and `counts` the processor's cores.
set -u
out=$(mkdir -p "$1" && cd "$1" && pwd)
shift
tree=$(cd "$(dirname "$0")/.." && pwd)
scratch=${SCRATCH:-$(mktemp -d)}
preset=${PRESET:-paper}
cores=$(env -u OMP_NUM_THREADS nproc) # nproc believes this variable
half=$((cores > 1 ? cores / 2 : 1))
program="from glasshouse.cli import main; main()"
mkdir -p "$scratch/logs"
cp -r "$tree/results" "$scratch/"
export PYTHONUNBUFFERED=1

# step SECONDS CORES EXPERIMENT DATASET...
step() {
    local seconds=$1 where=$2 name=$3 began=$SECONDS code
    shift 3
    local places=()
    for dataset in "$@"; do places+=(--dataset "$dataset"); done
    timeout "$seconds" taskset -c "$where" "${PYTHON:-python3}" -c "$program" reproduce "$name" --preset "$preset" \
        "${places[@]}" --quiet --out "$scratch/results" --pools "$scratch/pools" >"$scratch/logs/$name-$1.log" 2>&1
    code=$?
    [ $code -ne 0 ] && tail -n 3 "$scratch/logs/$name-$1.log"
    echo "$name $*: exit $code after $((SECONDS - began)) s"
    (
        flock 9
        tar -czf "$out/.results" -C "$scratch" results logs && mv "$out/.results" "$out/results.tgz"
    ) 9>"$scratch/lock"
}

all="0-$((cores - 1))"
first="0-$((half - 1))"
second="$((cores > 1 ? half : 0))-$((cores - 1))"

clock() {
    step 150 "$all" wall-clock pubmed
    step 150 "$all" wall-clock amazon-photo
}
models() {
    step 240 "$all" rmia-beta cora
    step 240 "$all" table-1 pubmed
    step 240 "$all" rmia-beta citeseer
    step 300 "$all" table-1 amazon-photo
    step 300 "$all" table-1 github
}
chains() { step 480 "$first" samplers amazon-photo; }
counts() { step 480 "$second" vary-m pubmed; }

lanes=" ${*:-clock models chains counts} "
case $lanes in *" clock "*) clock ;; esac
for lane in models chains counts; do
    case $lanes in *" $lane "*) "$lane" & ;; esac
done
wait
