"""The server of ``irscope mcp``: tools for agents, over the Model Context Protocol.

A tool is a thin adapter: it starts a command of irscope, or a debug session, and bounds what that prints.
"""
