#!/bin/sh
# A sweep in shards through GNU parallel, on this machine or over hosts, merged to one database.
#
#   parallel-shards.sh DATABASE SWEEP-OPTIONS...
#
# e.g. parallel-shards.sh ranks.sqlite -c configs/u50-2enc.ini --over tt.rank=4:24:4 --over engine.cols=8,12,16
#
# SHARDS       number of shards (default 4)
# SSHLOGINS    hosts for GNU parallel's --sshlogin, e.g. "8/node1,8/node2" (default: this machine). They need the program
#              under the same name and this folder under the same path, on a common file system.
# CONTRAFLOW   the program (default: contraflow)
#
# The same command again goes on where it was stopped: a shard keeps its finished points.
set -eu
database=${1:?usage: parallel-shards.sh DATABASE SWEEP-OPTIONS...}
shift
shards=${SHARDS:-4}
program=${CONTRAFLOW:-contraflow}

# One process per shard: the division over cores is GNU parallel's business. A shard with failed points has status 1, but
# all of its rows.
: | parallel ${SSHLOGINS:+--sshlogin "$SSHLOGINS" --workdir .} true 2>/dev/null || { echo "GNU parallel is needed" >&2; exit 2; }
seq "$shards" | parallel ${SSHLOGINS:+--sshlogin "$SSHLOGINS" --workdir .} --quote \
    "$program" sweep "$@" --jobs 1 --shard "{}/$shards" --db "$database.shard{}" || true

set --
for i in $(seq "$shards"); do
    set -- "$@" "$database.shard$i"
done
exec "$program" merge --db "$database" "$@"
