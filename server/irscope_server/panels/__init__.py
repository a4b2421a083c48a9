"""What the panels show: the pipeline of a compile, findings by cause, compile time, memory, and what changed.

One module for each request; each is a function from the run store to plain data, with no editor in it, so that
`irscope view` answers them as the language server does.
"""
