"""The command line: ``irscope run``, ``irscope list``, ``irscope show``."""

from irscope.cli.main import main as main
