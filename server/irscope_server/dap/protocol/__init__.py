"""The Debug Adapter Protocol: messages, sessions, requests."""
