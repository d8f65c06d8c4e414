"""``docs/make_site.py`` and ``docs/apis.py``, which are no part of the package."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

import apis as _apis
import make_site as _site

apis: Any = _apis
site: Any = _site
