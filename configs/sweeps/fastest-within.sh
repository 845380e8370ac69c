#!/bin/sh
# The fastest array of PEs, with the banks to feed it, whose design takes at most BLOCKS BRAM36: looks at half and double
# of each size around the best point so far, until the best is in the middle. All points lie in one database, so that a
# point is never run twice, and an interrupted search goes on where it was.
#
#   fastest-within.sh BLOCKS -c DESIGN [--section.key=value ...]
#
# CONTRAFLOW   the program (default: contraflow)
# DATABASE     default fastest-within.sqlite
set -eu
budget=${1:?usage: fastest-within.sh BLOCKS -c DESIGN [--section.key=value ...]}
shift
program=${CONTRAFLOW:-contraflow}
database=${DATABASE:-fastest-within.sqlite}

around() { # half, same and double, from 1 to 64
    echo "$1" | awk '{ list = $1; if ($1 >= 2) list = $1 / 2 "," list; if ($1 <= 32) list = list "," 2 * $1; print list }'
}

count=1 rows=2 cols=2 banks=4
while :; do
    # Status 1: some points do not fit, which is what we want to know.
    "$program" sweep "$@" --db "$database" --values off --over "engine.count=$(around $count)" \
        --over "engine.rows=$(around $rows)" --over "engine.cols=$(around $cols)" \
        --over "memory.banks=$(around $banks)" >&2 || [ $? -eq 1 ]
    best=$("$program" export --db "$database" --column cycles.total --column memory.bram36.used |
        awk -F, -v budget="$budget" '
            $6 == "done" && $9 <= budget && (cycles == "" || $8 < cycles) {
                cycles = $8; best = $2 " " $3 " " $4 " " $5 " " $8 " " $9
            }
            END { print best }')
    if [ -z "$best" ]; then
        echo "no design within $budget BRAM36" >&2
        exit 1
    fi
    read -r new_count new_rows new_cols new_banks cycles blocks <<EOF
$best
EOF
    if [ "$new_count $new_rows $new_cols $new_banks" = "$count $rows $cols $banks" ]; then
        echo "--engine.count=$count --engine.rows=$rows --engine.cols=$cols --memory.banks=$banks:" \
            "$cycles cycles, $blocks BRAM36"
        exit 0
    fi
    count=$new_count rows=$new_rows cols=$new_cols banks=$new_banks
done
