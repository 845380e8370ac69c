#!/bin/sh
# Points per second of a sweep: one timing-only step of the two-encoder model per point, 10,000 points or a first part of
# them.   sweep.sh PROGRAM DESIGN [POINTS]
set -eu
program=$1
design=$2
points=${3:-10000}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

awk -v points="$points" 'BEGIN {
    print "vector.lanes,tt.rank,engine.rows,engine.cols"
    for (i = 0; i < points; ++i) {  # arrays and ranks scattered, so that a part has the same mix as the whole
        k = (int(i / 5) * 7919) % 2000
        print 16 + 8 * (i % 5) "," 8 + 2 * (k % 5) "," 4 + int(k / 5) % 20 "," 4 + int(k / 100)
    }
}' >"$folder/points.csv"
start=$(date +%s.%N)
status=0
"$program" sweep -c "$design" --points "$folder/points.csv" --values off --db "$folder/sweep.sqlite" >"$folder/out" || status=$?
end=$(date +%s.%N)
[ "$status" -le 1 ] || exit "$status"
echo "sweep, values off, $(nproc) cores: $(sed 's/.*: //' "$folder/out"), $(awk -v a="$start" -v b="$end" -v n="$points" \
    'BEGIN { printf "%.1f s, %.1f points/s, 10,000 points in %.0f s", b - a, n / (b - a), 10000 * (b - a) / n }')"
