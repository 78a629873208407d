"""The scheduler of docs/python-plug-ins.md."""

import re
from pathlib import Path

import anabranch as ab

_PAGE = (Path(__file__).parents[2] / "docs/python-plug-ins.md").read_text()
_NAMES = {"ab": ab, "__name__": __name__}
exec(re.search(r"```python\n(class Blest.*?)```", _PAGE, re.S)[1], _NAMES)
Blest = _NAMES["Blest"]
