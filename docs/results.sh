#!/bin/sh
# Writes docs/results.md from sweeps that stand above their tables: sh docs/results.sh [PROGRAM] > docs/results.md
# Run it from the project's folder; it takes a few minutes.
set -eu
program=${1:-build/release/src/cli/contraflow}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

columns="macs cycles.total latency_s lower_bound.cycles lower_bound.macs lower_bound.vector lower_bound.bytes
    lower_bound.chain lower_bound.ratio utilisation.pe resources.dsp resources.lut resources.bram36 resources.uram
    resources.available.dsp resources.available.lut resources.available.bram36 resources.available.uram
    memory.bram36.used memory.uram.used ddr.read_bytes ddr.write_bytes energy.per_step_j utilisation.vector"

# table NAME SWEEP-OPTIONS...: a sweep of one step each, its command and its rows.
table() {
    name=$1
    shift
    arguments=
    for column in $columns; do
        arguments="$arguments --column $column"
    done
    "$program" sweep "$@" --values off --allow-overflow --db "$folder/$name.sqlite" > "$folder/log" 2>&1 || [ $? -eq 1 ]
    # shellcheck disable=SC2086
    "$program" export --csv --db "$folder/$name.sqlite" $arguments > "$folder/$name.csv"
    printf '\n    contraflow sweep'
    for argument in "$@"; do
        printf ' %s' "$argument"
    done
    printf ' --values off --allow-overflow --db %s.sqlite\n\n' "$name"
    awk -f "$folder/table.awk" "$folder/$name.csv"
}

# Shared by the tables and the last section: fields by column name, thousands, whether a design fits.
cat > "$folder/fields.awk" <<'AWK'
function grouped(n,    text, out) {
    text = sprintf("%d", n)
    while (length(text) > 3) {
        out = "," substr(text, length(text) - 2) out
        text = substr(text, 1, length(text) - 3)
    }
    return text out
}
function field(name) { return $(column[name]) }
function lacking(    i, text) {  # what the design needs more of than the shell leaves
    for (i = 1; i <= 4; ++i)
        if (field("resources." part[i]) > field("resources.available." part[i]) + 0) text = text " " toupper(part[i])
    return text
}
function limit(    i, best) {
    best = 1
    for (i = 2; i <= 4; ++i)
        if (field("lower_bound." bound[i]) + 0 > field("lower_bound." bound[best]) + 0) best = i
    return bound[best]
}
function point(    i, text) {  # the keys of the sweep with their values
    for (i = 1; i <= NF; ++i)
        if (header[i] ~ /^(network|tt|engine|vector|schedule)\./) text = text (text == "" ? "" : ", ") substr(header[i], index(header[i], ".") + 1) " " $i
    return text
}
BEGIN {
    FS = ","
    split("dsp lut bram36 uram", part, " ")
    split("macs vector bytes chain", bound, " ")
}
FNR == 1 { for (i = 1; i <= NF; ++i) { header[i] = $i; column[$i] = i } }
AWK
cat "$folder/fields.awk" - > "$folder/table.awk" <<'AWK'
FNR == 1 {
    print "| design | MACs | cycles | ms / step | s / epoch | lower bound | x bound | PE use % | DSP | BRAM36 | URAM | DRAM bytes | mJ / step | fits |"
    print "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|"
    next
}
field("cycles.total") == "" { printf "| %s | does not run |\n", point(); next }
{
    printf "| %s | %s | %s | %.3f | %.2f | %s (%s) | %.2f | %.1f | %s | %s | %s | %s | %.1f | %s |\n", point(),
        grouped(field("macs")), grouped(field("cycles.total")), 1e3 * field("latency_s"), 4478 * field("latency_s"),
        grouped(field("lower_bound.cycles")), limit(), field("lower_bound.ratio"), 100 * field("utilisation.pe"),
        grouped(field("resources.dsp")), grouped(field("memory.bram36.used")), grouped(field("memory.uram.used")),
        grouped(field("ddr.read_bytes") + field("ddr.write_bytes")), 1e3 * field("energy.per_step_j"), lacking() == "" ? "yes" : "no:" lacking()
}
AWK

cat <<'TEXT'
# Results

Written by `docs/results.sh`; the commands stand above the tables. One step of each design on the U50 at 100 MHz, one HBM
pseudo channel. An epoch is 4,478 steps (the ATIS training split), without the host link. "Lower bound" is what no schedule
beats, with the part that sets it (docs/report.md). BRAM36 and URAM are the blocks of the memory plan; "fits" says whether DSP,
LUT, BRAM36 and URAM of the whole design (estimates) are within what the shell leaves, and what is not. A dense network does not fit on chip: its weights stream from DRAM.

## Flows and depths
TEXT
table flows -c configs/u50-2enc.ini --over network.flow=btt,tt,mm --over network.encoders=2,4,6

printf '\n## Ranks\n'
table ranks -c configs/u50-2enc.ini --over tt.rank=4,8,11,12,13,16,24,32,48

printf '\n## Schedules\n'
table schedules -c configs/u50-2enc.ini --over schedule.policy=serial,overlap --over schedule.split=off,on
table partial-sums -c configs/u50-2enc.ini --over engine.partial_sums=1,2,3,4

printf '\n## PEs\n\n%s\n' 'From 12 to 1,024 PEs, each 5 DSPs; the vector unit, and the adders for bias and residual, take their share.'
cat > "$folder/points.csv" <<'CSV'
engine.count,engine.rows,engine.cols,vector.lanes
1,1,12,32
1,2,12,32
1,4,12,32
1,8,12,32
2,8,12,32
3,8,12,32
4,8,12,32
5,8,12,32
6,8,12,32
8,8,12,32
4,16,12,32
10,8,12,32
8,8,16,32
4,16,16,32
2,32,16,32
1,64,16,32
4,8,12,64
6,8,12,64
8,8,12,64
4,16,12,64
CSV
printf '\nwith points.csv:\n\n'
sed 's/^/    /' "$folder/points.csv"
table pes -c configs/u50-2enc.ini --points "$folder/points.csv" | sed "s|$folder/||"

printf '\n## The fastest within the U50\n\n'
cat "$folder/fields.awk" - > "$folder/fastest.awk" <<'AWK'
FNR == 1 || field("cycles.total") == "" || lacking() != "" { next }
best == "" || field("cycles.total") + 0 < best {
    best = field("cycles.total") + 0
    text = sprintf("Of the designs under \"PEs\" that fit, %s is the fastest: %s cycles, %.3f ms a step, %.2f s an epoch. Its largest lower bound is %s (%s cycles; MACs %s, vector %s, chain of dependent kernels %s); it takes %.2f times as many, with PEs %.1f %% and the vector unit %.1f %% used.",
        point(), grouped(best), 1e3 * field("latency_s"), 4478 * field("latency_s"), limit(), grouped(field("lower_bound.cycles")),
        grouped(field("lower_bound.macs")), grouped(field("lower_bound.vector")), grouped(field("lower_bound.chain")),
        field("lower_bound.ratio"), 100 * field("utilisation.pe"), 100 * field("utilisation.vector"))
}
END { print text == "" ? "None fits." : text }
AWK
awk -f "$folder/fastest.awk" "$folder/pes.csv"
