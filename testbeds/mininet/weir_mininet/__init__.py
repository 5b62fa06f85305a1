"""weir in Mininet: `switches` has classes that start ours or BMv2's, `experiment` makes a network of a scenario file.

Mininet raises kernel settings of the whole machine, and its clean-up kills processes by name; so nothing here runs
outside a private user, PID, mount and network namespace (see `private`).
"""
