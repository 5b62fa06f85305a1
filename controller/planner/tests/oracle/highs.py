"""Solves programs with HiGHS: JSON lines in, JSON lines out.

A line in: {"maximize": bool, "variables": [[lower, upper, objective, is_integer], ...],
"rows": [[[[column, value], ...], lower, upper], ...]}; 1e30 is no bound.
A line out: {"status": "optimal" | "infeasible" | "unbounded" | ..., "objective": number}.
"""

import json
import os
import sys

import highspy
import numpy as np


def solve(case):
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.setOptionValue("mip_abs_gap", 1e-9)
    highs.setOptionValue("threads", 1)
    for lower, upper, objective, is_integer in case["variables"]:
        highs.addCol(objective, lower, upper, 0, np.array([], dtype=np.int32), np.array([]))
        if is_integer:
            highs.changeColIntegrality(highs.getNumCol() - 1, highspy.HighsVarType.kInteger)
    for terms, lower, upper in case["rows"]:
        columns = np.array([column for column, _ in terms], dtype=np.int32)
        values = np.array([value for _, value in terms], dtype=np.double)
        highs.addRow(lower, upper, len(terms), columns, values)
    if case["maximize"]:
        highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
    highs.run()
    status = highs.getModelStatus()
    names = {
        highspy.HighsModelStatus.kOptimal: "optimal",
        highspy.HighsModelStatus.kInfeasible: "infeasible",
        highspy.HighsModelStatus.kUnbounded: "unbounded",
    }
    return {
        "status": names.get(status, str(status)),
        "objective": highs.getInfo().objective_function_value,
    }


# HiGHS prints its banner even when told to be silent.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for line in sys.stdin:
    answer = solve(json.loads(line))
    # JSON knows no infinity.
    if not np.isfinite(answer["objective"]):
        answer["objective"] = 0.0
    print(json.dumps(answer), file=answers, flush=True)
