"""What the ranks of one job compiled, next to each other: where they differ, what they communicate, what they hold.

Each rank has its own run.  `normalized` reads a graph without what differs between ranks of any job, `differences`
finds the first place at which two ranks differ, and `collectives` lists what a rank sends.
"""
