#!/bin/sh
# Tensor rank against PEs: how many cycles does each rank cost, and which engines pay?   rank-pes.sh [SWEEP-OPTIONS...]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=${CONTRAFLOW:-contraflow}
database=${DATABASE:-rank-pes.sqlite}
"$program" sweep -c "$here/../${DESIGN:-u50-2enc.ini}" --db "$database" --values off \
    --over tt.rank=4:24:4 --over engine.rows=4,8,16 --over engine.cols=8,12,16 "$@" || [ $? -eq 1 ]
"$program" pareto --db "$database" --min cycles.total --min resources.dsp --min memory.parameters_bytes
