#!/usr/bin/env python3
"""Draws the rates of miners as a bar chart in SVG.

    scripts/draw_rates.py RATES.csv OUTPUT.svg

Columns: name, billions of distinct npub candidates a second, day of the measurement. It reads on
light and on dark pages: the background is part of the picture.
"""

import csv
import sys
from html import escape
from pathlib import Path

WIDTH, LEFT, RIGHT, TOP, ROW, BAR = 760, 210, 110, 74, 46, 26
FIRST, OTHERS = "#7a3ff2", "#9aa0ad"


def difference(most: float, rate: float) -> str:
    """How much slower than the fastest, in words."""
    return "" if rate == most else f", a factor of {most / rate:.2g} less"


def main() -> None:
    with open(sys.argv[1], newline="") as file:
        rows = [(name, float(rate), day) for name, rate, day in list(csv.reader(file))[1:]]
    most = max(rate for _, rate, _ in rows)
    height = TOP + ROW * len(rows) + 44
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, -apple-system, Segoe UI, DejaVu Sans, sans-serif">',
        "<title>Rates of three miners on one NVIDIA H200</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        '<text x="24" y="32" font-size="17" font-weight="600" fill="#1c1e26">'
        "Npubs tried a second on one NVIDIA H200</text>",
        '<text x="24" y="54" font-size="13" fill="#5b6070">'
        "billions of distinct npubs, one pattern, each miner with its fastest settings</text>",
    ]
    for at, (name, rate, day) in enumerate(rows):
        y = TOP + ROW * at + 8
        length = (WIDTH - LEFT - RIGHT) * rate / most
        middle = y + BAR / 2 + 5
        parts += [
            f'<text x="{LEFT - 12}" y="{middle}" font-size="15" text-anchor="end" fill="#1c1e26">'
            f"{escape(name)}</text>",
            f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" rx="3" '
            f'fill="{FIRST if at == 0 else OTHERS}"><title>measured {escape(day)}</title></rect>',
            f'<text x="{LEFT + length + 10:.1f}" y="{middle}" font-size="15" fill="#1c1e26">'
            f"{rate:g} G/s{difference(most, rate)}</text>",
        ]
    days = sorted({day for _, _, day in rows})
    parts += [
        f'<text x="24" y="{height - 18}" font-size="12" fill="#5b6070">'
        f"Measured {escape(' and '.join(days))}. P and -P are one npub and count once. "
        "Details: docs/performance.md</text>",
        "</svg>",
    ]
    Path(sys.argv[2]).write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
