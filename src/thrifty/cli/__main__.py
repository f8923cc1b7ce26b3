"""`python -m thrifty.cli`."""

import sys

from thrifty.cli.main import main

sys.exit(main())
