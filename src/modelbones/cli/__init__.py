"""The command line: verbs, flags, exit codes. Only this package exits.

0 good; 1 looked and found wanting; 2 wrong use; 3 MODEL or its config unreadable or
refused; 4 an architecture or a scheme that cannot be judged.
"""

from modelbones.cli.main import main

__all__ = ["main"]
