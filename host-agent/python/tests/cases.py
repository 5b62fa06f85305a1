"""Runs test files one after another, each in a forked process, since the import of torch takes seconds. Exits
with 0 if all of them are right; if not, the last line names those that are not.

An argument is a case: settings, a file and its arguments, such as `WEIR_NON_FINITE=gloo all_reduce.py`.
"""

import os
import runpy
import sys
from pathlib import Path

import torch.distributed  # noqa: F401: what every case imports

FIRST_PORT = 20000
PORTS_OF_A_CASE = 200

failed = []
for number, case in enumerate(sys.argv[1:]):
    words = case.split()
    settings = [word for word in words if "=" in word]
    file, *arguments = words[len(settings):]
    process = os.fork()
    if process == 0:
        os.environ.update(setting.split("=", 1) for setting in settings)
        os.environ["MASTER_PORT"] = str(FIRST_PORT + PORTS_OF_A_CASE * number)
        path = str(Path(__file__).with_name(file))
        sys.argv = [path, *arguments]
        runpy.run_path(path, run_name="__main__")
        sys.exit()
    if os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) != 0:
        failed.append(case)
if failed:
    sys.exit("failed: " + "; ".join(failed))
