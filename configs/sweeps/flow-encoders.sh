#!/bin/sh
# The three flows at 2, 4 and 6 encoder blocks. Dense weights do not fit the device, which is the point of compressing
# them: --allow-overflow counts their cycles all the same.   flow-encoders.sh [SWEEP-OPTIONS...]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=${CONTRAFLOW:-contraflow}
database=${DATABASE:-flow-encoders.sqlite}
"$program" sweep -c "$here/../${DESIGN:-u50-2enc.ini}" --db "$database" --values off --allow-overflow \
    --over network.flow=btt,tt,mm --over network.encoders=2,4,6 "$@" || [ $? -eq 1 ]
"$program" export --db "$database" --column cycles.total --column energy_j.total \
    --column memory.bram36.used --column memory.uram.used
