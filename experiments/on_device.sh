#!/usr/bin/env bash
# The paper's cells that need a GPU or many cores, in calls of ten minutes on a machine that is lent for minutes.
#
#   python -m glasshouse_experiments.source_commit     # before the tree is copied there: a copy has no .git
#   experiments/on_device.sh FOLDER [LANE ...]         # there; lanes as at the end of this file
#
# FOLDER gets results.tgz, written again after every step, with a log of each step in it. PYTHONPATH needs src, experiments and
# what Glasshouse imports; GLASSHOUSE_DATA the data. A step that runs out of its time is stopped, and the next begins; none
# runs past LIMIT seconds after the start. Times are measured in the lane `clock`, with nothing beside it. The others run side
# by side: `many` needs the GPU and two cores for each data set, `quick` two cores alone, `chains` all other cores.
set -u
out=$(mkdir -p "$1" && cd "$1" && pwd)
shift
tree=$(cd "$(dirname "$0")/.." && pwd)
scratch=${SCRATCH:-$(mktemp -d)}
preset=${PRESET:-paper}
limit=${LIMIT:-580}
cores=$(env -u OMP_NUM_THREADS nproc) # nproc believes this variable
program="from glasshouse.cli import main; main()"
mkdir -p "$scratch/logs"
cp -r "$tree/results" "$scratch/"
export PYTHONUNBUFFERED=1

# step SECONDS CORES POOLS EXPERIMENT [OPTION ...]
step() {
    local seconds=$1 where=$2 pools=$3 name=$4 began=$SECONDS code left=$((limit - SECONDS)) log
    shift 3
    log="$scratch/logs/$(echo "$*" | tr -c 'a-z0-9\n' '-' | tr -s '-').log"
    [ $left -lt 5 ] && echo "$*: no time left" && return
    timeout $((seconds < left ? seconds : left)) taskset -c "$where" "${PYTHON:-python3}" -c "$program" reproduce "$@" \
        --quiet --out "$scratch/results" --pools "$scratch/$pools" >"$log" 2>&1
    code=$?
    [ $code -ne 0 ] && tail -n 3 "$log"
    echo "$*: exit $code after $((SECONDS - began)) s, at $SECONDS s"
    (
        flock 9
        tar -czf "$out/.results" -C "$scratch" results logs && mv "$out/.results" "$out/results.tgz"
    ) 9>"$scratch/lock"
}

range() { # the cores from $1 to $2, as far as there are any
    local last=$((cores - 1))
    echo "$(($1 < last ? $1 : last))-$(($2 < last ? $2 : last))"
}
two=$(range 0 1)
rest=$(range 6 $((cores - 1)))

clock() { # with nothing beside it; the two cores use the models that the GPU trained
    for dataset in pubmed amazon-photo; do
        step 150 "$(range 0 $((cores - 1)))" pools wall-clock --preset "$preset" --dataset $dataset
    done
}
two_cores() {
    for dataset in pubmed amazon-photo; do
        CUDA_VISIBLE_DEVICES='' step 300 "$two" pools wall-clock --preset "$preset" --dataset $dataset
    done
}
many() {
    step 570 "$(range 2 3)" many table-1 --preset "$preset" --dataset amazon-photo &
    step 570 "$(range 4 5)" many table-1 --preset "$preset" --dataset github &
    wait
}
quick() { CUDA_VISIBLE_DEVICES='' step 600 "$two" quick all --preset quick; }
chains() { # each data set's first part trains the models that its chains use
    local each=$((cores > 11 ? 10 : 2))
    step 200 "$rest" chains samplers --preset "$preset" --dataset amazon-photo --part first &
    step 200 "$rest" chains samplers --preset "$preset" --dataset github --part first &
    wait
    step 500 "$rest" chains samplers --preset "$preset" --dataset amazon-photo --part metropolis --workers $each &
    step 500 "$rest" chains samplers --preset "$preset" --dataset amazon-photo --part gibbs
    wait
    step 500 "$rest" chains samplers --preset "$preset" --dataset github --part metropolis --workers $each
}
measure() { # SECONDS CORES BENCHMARK [OPTION ...]
    local seconds=$1 where=$2 name=$3 began=$SECONDS left=$((limit - SECONDS))
    shift 3
    timeout $((seconds < left ? seconds : left)) taskset -c "$where" "${PYTHON:-python3}" "$tree/benchmarks/$name.py" "$@" 2>&1 |
        tee "$scratch/logs/$name-$1-$2.log" | tail -n 4
    echo "$name $*: $((SECONDS - began)) s, at $SECONDS s"
}
open() { # cells that do not meet the paper's
    measure 400 "$(range 2 3)" open_cells --cells threshold --out "$out/open_threshold.md" &
    measure 400 "$(range 4 5)" open_cells --cells mismatch --seeds 6 --out "$out/open_mismatch.md" &
    measure 400 "$(range 6 7)" open_cells --cells chains --out "$out/open_chains.md" &
    wait
}
flickr() { measure 400 "$(range 8 $((cores - 1)))" flickr_size --out "$out/flickr_size.md"; }

lanes=" ${*:-clock two_cores many chains quick} "
case $lanes in *" clock "*) clock ;; esac
for lane in two_cores many chains quick open flickr; do
    case $lanes in *" $lane "*) "$lane" & ;; esac
done
wait
