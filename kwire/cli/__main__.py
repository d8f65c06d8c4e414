"""``python -m kwire.cli``: the command ``kwire`` where the script is not on the path."""

import sys

from kwire.cli import main

sys.exit(main())
