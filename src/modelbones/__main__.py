"""`python -m modelbones`."""

import sys

from modelbones.cli.main import main

sys.exit(main())
