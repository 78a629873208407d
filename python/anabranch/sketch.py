"""A scenario as a sketch of its paths, in SVG."""

from __future__ import annotations

from html import escape
from typing import Any

#: Okabe and Ito's colours, which people with any colour vision can tell apart; black stays for text.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")

_WIDTH, _ROW, _HOST = 760, 76, 78


def _both(value: Any, unit: str = "") -> str:
    """A value for each direction, or one for both."""
    if isinstance(value, dict) and ("down" in value or "up" in value):
        down, up = value.get("down"), value.get("up")
        if down == up:
            return _both(down)
        return f"↓ {_both(down)} ↑ {_both(up)}"
    if isinstance(value, dict) and "kind" in value:
        return str(value["kind"])
    if isinstance(value, dict):
        return ", ".join(f"{key} {_both(of)}" for key, of in value.items())
    text = str(value)
    bytes_ = text.removesuffix("B")
    if bytes_ != text and bytes_.isdigit() and int(bytes_) >= 1000:
        return f"{int(bytes_) / 1000:.4g} kB"
    return text


def _facts(path: dict[str, Any]) -> tuple[str, str]:
    rate = f"trace {_both(path['trace'])}" if "trace" in path else _both(path.get("rate", ""))
    if "link" in path:
        rate = f"link {path['link']}"
    above = " · ".join(part for part in [rate, _both(path.get("delay", ""))] if part)
    losses = _both(path.get("loss", ""))
    below = [f"queue {_both(path['queue'])}" if "queue" in path else ""]
    below.append(f"loss {losses}" if losses not in ("", "0%") else "")
    below.append("backup" if path.get("backup") is True else "")
    return above, " · ".join(part for part in below if part)


def sketch(name: str, connection: dict[str, Any], paths: list[dict[str, Any]]) -> str:
    """The hosts, and between them each path with its rate, delay, queue and loss: all as in a resolved scenario."""
    height = 34 + _ROW * len(paths)
    middle = 34 + _ROW * len(paths) / 2
    left, right = 12 + _HOST, _WIDTH - 12 - _HOST
    scheduler = connection.get("scheduler", "")
    scheduler = scheduler.get("kind", "") if isinstance(scheduler, dict) else scheduler
    title = " · ".join(escape(str(part)) for part in [name, scheduler, connection.get("congestion", "")] if part)
    parts = [f'<text x="12" y="18" font-weight="bold">{title}</text>']
    for number, path in enumerate(paths):
        y = 34 + _ROW * (number + 0.5)
        colour = COLOURS[number % len(COLOURS)]
        bend = f"M{left},{middle} C{left + 60},{middle} {left + 60},{y} {left + 120},{y}"
        bend += f" L{right - 120},{y} C{right - 60},{y} {right - 60},{middle} {right},{middle}"
        dash = ' stroke-dasharray="6 4"' if path.get("backup") is True else ""
        parts.append(f'<path d="{bend}" fill="none" stroke="{colour}" stroke-width="3"{dash}/>')
        above, below = _facts(path)
        label = escape(str(path["name"]))
        parts.append(f'<text x="{left + 124}" y="{y - 8}" font-weight="bold">{label}</text>')
        parts.append(f'<text x="{_WIDTH / 2}" y="{y - 8}" text-anchor="middle">{escape(above)}</text>')
        parts.append(f'<text x="{_WIDTH / 2}" y="{y + 18}" text-anchor="middle" opacity="0.75">{escape(below)}</text>')
    for x, host in [(12, "server"), (right, "client")]:
        parts.append(
            f'<rect x="{x}" y="{middle - 18}" width="{_HOST}" height="36" rx="4" fill="none" stroke="currentColor"/>'
            f'<text x="{x + _HOST / 2}" y="{middle + 4}" text-anchor="middle">{host}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="12" fill="currentColor">{"".join(parts)}</svg>'
    )
