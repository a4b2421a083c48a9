"""`irscope view`: the panels in a web browser, served on 127.0.0.1 to clients that have the token.

It reads the run store and texts of files that a run in it names; it writes to the store what compilers make of a
kernel when it is opened.  `reader.py` answers requests, by the same functions as the language server; `wishes.py`
finds what the user says about findings; `web.py` speaks HTTP; `news.py` tells pages of what is new; `address.py` is how
one command finds the server of another.
"""
