#!/bin/sh
# The same network on the boards of devices.csv, each with the engines it has room for; a board on which the design does
# not fit is a row with the reason.   devices.sh [SWEEP-OPTIONS...]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=${CONTRAFLOW:-contraflow}
database=${DATABASE:-devices.sqlite}
"$program" sweep -c "$here/../${DESIGN:-u50-2enc.ini}" --db "$database" --values off --points "$here/devices.csv" "$@" ||
    [ $? -eq 1 ]
"$program" export --db "$database" --column latency_s --column energy_j.total --column memory.bram36.used
