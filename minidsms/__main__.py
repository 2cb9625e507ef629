"""`python -m minidsms` is the command `minidsms`."""

from __future__ import annotations

import sys

from minidsms.shell.main import main

sys.exit(main())
