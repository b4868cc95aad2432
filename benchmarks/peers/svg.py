"""Plots as SVG: bars with ranges, distributions, lines. Text and numbers in, text out."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH: Final = 760
LABEL: Final = 190
ROW: Final = 22
NAME: Final = 17
CHARACTER: Final = 6.6
STEPS: Final = (1, 2, 2.5, 5, 10)
OWN, OTHER = "#1c6e8c", "#b9b4a7"
LIMIT: Final = ("#222", ' stroke-dasharray="1 3"')
COLOURS: Final = ("#1c6e8c", "#d1495b", "#edae49", "#66a182", "#8d6a9f", "#5c5c5c", "#c97c5d")
FONT: Final = 'font-family="system-ui, sans-serif" font-size="12"'


class Bar(NamedTuple):
    """One bar: its median, how far repetitions went, whether it is our own, and what is said behind its number."""

    label: str
    value: float
    low: float
    high: float
    is_own: bool = False
    note: str = ""


class Line(NamedTuple):
    """One line: points of x and y, and whether it is no library's but the limit."""

    label: str
    points: list[tuple[float, float]]
    is_limit: bool = False


def number(value: float) -> str:
    """Short: three digits."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _text(x: float, y: float, text: str, anchor: str = "start", fill: str = "#222") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'


def _open(height: float, title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" {FONT} '
        f'role="img"><title>{escape(title)}</title>'
    )


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Horizontal bars from zero, each with the range of its repetitions."""
    top = max((row.high for row in rows), default=1.0) or 1.0
    told = max((len(number(row.value) + row.note) for row in rows), default=0)
    scale = (WIDTH - LABEL - 12 - CHARACTER * told) / top
    parts = [_open(ROW * len(rows) + 6, title)]
    for at, row in enumerate(rows):
        y = ROW * at + 4
        middle = y + ROW / 2 - 3
        end = LABEL + row.value * scale
        size = f'width="{max(row.value * scale, 0.5):.1f}" height="{ROW - 6}"'
        parts += [
            _text(LABEL - 8, middle + 4, row.label, "end"),
            f'<rect x="{LABEL}" y="{y}" {size} fill="{OWN if row.is_own else OTHER}"/>',
            f'<path d="M{LABEL + row.low * scale:.1f} {middle:.1f}H{LABEL + row.high * scale:.1f}" stroke="#222"/>',
            _text(max(end, LABEL + row.high * scale) + 6, middle + 4, number(row.value) + row.note),
        ]
    return "".join([*parts, "</svg>"])


class _Axes:
    """A frame with logarithmic or plain axes."""

    height = 310.0
    left, right, top, bottom = 60.0, WIDTH - 215.0, 24.0, 270.0

    def __init__(self, lines: Sequence[Line], *, log_x: bool, log_y: bool) -> None:
        points = [point for line in lines for point in line.points]
        self._x = _Scale([x for x, _ in points], self.left, self.right, log=log_x)
        self._y = _Scale([y for _, y in points] + ([] if log_y else [0.0]), self.bottom, self.top, log=log_y)

    def place(self, point: tuple[float, float]) -> str:
        return f"{self._x.at(point[0]):.1f} {self._y.at(point[1]):.1f}"

    def drawn(self, x_label: str, y_label: str) -> list[str]:
        parts = [
            f'<path d="M{self.left} {self.top}V{self.bottom}H{self.right}" fill="none" stroke="#888"/>',
            _text((self.left + self.right) / 2, self.bottom + 34, x_label, "middle", "#555"),
            _text(4, 12, y_label, "start", "#555"),
        ]
        parts += [
            _text(self._x.at(tick), self.bottom + 16, number(tick), "middle", "#555")
            for tick in self._x.ticks()
        ]
        for tick in self._y.ticks():
            y = self._y.at(tick)
            parts.append(_text(self.left - 6, y + 4, number(tick), "end", "#555"))
            parts.append(f'<path d="M{self.left} {y:.1f}H{self.right}" stroke="#eee"/>')
        return parts


class _Scale:
    """From values to places."""

    def __init__(self, values: Sequence[float], start: float, end: float, *, log: bool) -> None:
        self._log = log
        low, high = min(values, default=0.0), max(values, default=1.0)
        if log:
            low, high = math.log10(max(low, 1e-3)), math.log10(max(high, 2e-3))
        self._low, self._high = low, high if high > low else low + 1
        self._start, self._end = start, end

    def at(self, value: float) -> float:
        place = math.log10(max(value, 1e-3)) if self._log else value
        return self._start + (place - self._low) / (self._high - self._low) * (self._end - self._start)

    def ticks(self) -> list[float]:
        if self._log:
            return [10.0**power for power in range(math.ceil(self._low), math.floor(self._high) + 1)]
        least = (self._high - self._low) / 4
        power = 10.0 ** math.floor(math.log10(least))
        step = next(each * power for each in STEPS if each * power >= least * (1 - 1e-9))
        return [self._low + step * at for at in range(5) if self._low + step * at <= self._high]


def _look(at: int) -> tuple[str, str]:
    """Colour and dashes of the line at a place."""
    return COLOURS[at % len(COLOURS)], "" if at < len(COLOURS) else ' stroke-dasharray="4 3"'


def lines(
    title: str, of: Sequence[Line], x_label: str, y_label: str, *, log_x: bool = True, log_y: bool = True
) -> str:
    """Lines in one frame, named beside it."""
    axes = _Axes(of, log_x=log_x, log_y=log_y)
    parts = [_open(max(axes.height, axes.top + NAME * (len(of) + 1)), title), *axes.drawn(x_label, y_label)]
    for at, line in enumerate(of):
        colour, dashes = LIMIT if line.is_limit else _look(at)
        path = "L".join(axes.place(point) for point in line.points)
        y = axes.top + 10 + NAME * at
        parts += [
            f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dashes}/>',
            f'<path d="M{axes.right + 14} {y - 4}h18" stroke="{colour}" stroke-width="3"{dashes}/>',
            _text(axes.right + 38, y, line.label),
        ]
    return "".join([*parts, "</svg>"])
