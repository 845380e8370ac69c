#!/usr/bin/env python3
"""The fastest design within a block budget, by coordinate descent over any keys. Standard library only.

    fastest_within.py BLOCKS DESIGN KEY=V1,V2,... [KEY=V1,V2,...] [--program contraflow]

Starts from the first value of each key; changes one key at a time to the value with the fewest cycles, as long as that
helps. `contraflow check` tells the blocks without simulating, so that only designs within the budget are run.
"""
import argparse
import json
import subprocess
import sys


class Designs:
    """Calls the program, once per design."""

    def __init__(self, program, design, budget):
        self.program, self.design, self.budget = program, design, budget
        self.known = {}

    def call(self, command, keys, *options):
        arguments = [f"--{key}={value}" for key, value in keys.items()]
        result = subprocess.run([self.program, command, "-c", self.design, "--json", *options, *arguments],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return json.loads(result.stdout) if result.returncode == 0 else None

    def cost(self, keys):
        """(cycles of a step, blocks); None if the design is impossible or beyond the budget."""
        name = tuple(keys.items())
        if name not in self.known:
            self.known[name] = None
            plan = self.call("check", keys)
            if plan and plan["memory"]["bram36"]["used"] <= self.budget:
                report = self.call("run", keys, "--values", "off")
                if report:
                    self.known[name] = (report["cycles"]["total"], plan["memory"]["bram36"]["used"])
        return self.known[name]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blocks", type=int)
    parser.add_argument("design")
    parser.add_argument("keys", nargs="+", metavar="KEY=V1,V2,...")
    parser.add_argument("--program", default="contraflow")
    options = parser.parse_args()

    choices = {key: values.split(",") for key, values in (argument.split("=", 1) for argument in options.keys)}
    designs = Designs(options.program, options.design, options.blocks)
    best = {key: values[0] for key, values in choices.items()}
    best_cost = designs.cost(best)
    improved = True
    while improved:
        improved = False
        for key, values in choices.items():
            for value in values:
                candidate = {**best, key: value}
                cost = designs.cost(candidate)
                if cost and (best_cost is None or cost < best_cost):
                    best, best_cost, improved = candidate, cost, True
    if best_cost is None:
        sys.exit(f"no design within {options.blocks} BRAM36 near the first values")
    print(" ".join(f"--{key}={value}" for key, value in best.items()) + f": {best_cost[0]} cycles, {best_cost[1]} BRAM36")


if __name__ == "__main__":
    main()
