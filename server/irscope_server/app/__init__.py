"""The server process: transport, messages, settings, requests, archive."""
