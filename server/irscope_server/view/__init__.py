"""`irscope view`: the panels in a web browser, served on 127.0.0.1 to whoever has the token.

It only reads: the run store, and texts of files that a run in it tells of.  `reader.py` answers requests, by the same
functions as the language server; `web.py` speaks HTTP; `news.py` tells pages of what is new; `address.py` is how one
command finds the server of another.
"""
