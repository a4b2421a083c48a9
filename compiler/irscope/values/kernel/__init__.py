"""One Triton kernel of a stored run, run by Triton's interpreter on a machine without a GPU.

`asking` collects from the store what the kernel needs, `running` starts a process of the user's interpreter for it, and
`process` is that process: it makes the inputs (`given`, `eager`), runs `programs` of the kernel (`interpreter`) with checks
of its memory (`memory`), records one of them statement by statement (`recording`), and compares the result (`compared`).
"""
