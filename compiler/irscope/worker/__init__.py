"""The worker: a fork server in the user's interpreter that has imported torch already, so that a run starts at once.

`server.py` is what runs there; `client.py` is how the driver speaks to it; `process.py` is a run's process, forked or
fresh, as the driver sees it.
"""
