#!/usr/bin/env python3
"""Draws the README's pictures: the demo's conversation as a chat, and the page on a phone.

    scripts/draw_pictures.py NPUBBOT_BINARY FOLDER

`chat.svg` has every line of `npubbot demo`; `page.png` is `npubbot demo --page` in Chromium, before
and after a search. Secret keys are covered, since a picture of one is copied by somebody.
Needs Python's `playwright`, and Chromium (`NPUBBOT_CHROMIUM`, else the one on the PATH).
"""

import base64
import os
import re
import shutil
import subprocess
import sys
import textwrap
from html import escape
from pathlib import Path

from playwright.sync_api import sync_playwright

ASKED = "m0ct"
NSEC = re.compile(r"nsec1[a-z0-9]{58}")
COVER = "nsec1" + "•" * 30
WIDTH, CHARACTERS, LINE = 520, 44, 21


def conversation(binary: str) -> list[tuple[str, list[str]]]:
    """Who says what in the demo."""
    command = [binary, "demo", "--prefix", ASKED]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    messages: list[tuple[str, list[str]]] = []
    for line in said.splitlines():
        if match := re.match(r" *(asker|bot|) *\| (.*)", line):
            who, text = match.groups()
            if who:
                messages.append((who, []))
            messages[-1][1].append(NSEC.sub(COVER, text))
    return messages


def chat(messages: list[tuple[str, list[str]]]) -> str:
    """The conversation as an SVG: the asker on the right, the bot on the left."""
    parts, y = [], 20
    for who, texts in messages:
        lines = [(part, " " not in text) for text in texts for part in textwrap.wrap(text, CHARACTERS)]
        mine = who == "asker"
        width = min(430, 26 + round(9.1 * max(len(line) for line, _ in lines)))
        x, height = (WIDTH - 20 - width if mine else 20), 20 + LINE * len(lines)
        fill, ink = ("#5b2cb5", "#fff") if mine else ("#fff", "#1b1626")
        parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="14" fill="{fill}"/>')
        for row, (line, is_one_word) in enumerate(lines):
            font = ' font-family="ui-monospace, monospace" font-size="14"' if is_one_word else ""
            top = y + 25 + LINE * row
            parts.append(f'<text x="{x + 13}" y="{top}" fill="{ink}"{font}>{escape(line)}</text>')
        y += height + 12
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 8}" width="{WIDTH}"'
    style = 'font-family="system-ui, sans-serif" font-size="16"'
    return f'{head} {style}>\n<rect width="100%" height="100%" rx="10" fill="#ece9f3"/>\n' + "\n".join(parts) + "\n</svg>\n"


def page(binary: str, file: Path) -> None:
    """The page before and after a search, side by side."""
    command = [binary, "demo", "--page"]
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        link = next(line.strip() for line in demo.stdout if line.startswith("http"))
        chromium = os.environ.get("NPUBBOT_CHROMIUM") or shutil.which("chromium")
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            phone = browser.new_page(viewport={"width": 390, "height": 760}, locale="en-US")
            phone.goto(link)
            phone.get_by_text(re.compile("You ask npubbot")).wait_for()
            field = phone.get_by_role("textbox", name="What should your npub start with?")
            field.type(ASKED)
            phone.locator("#prefix-odds", has_text="About 1 key in").wait_for()
            field.evaluate("field => window.scrollTo(0, 0)")
            before = phone.screenshot()
            phone.get_by_role("button", name="Find my key").click()
            phone.get_by_text("Your key is here").wait_for(timeout=60_000)
            phone.evaluate("window.scrollTo(0, 0)")
            after = phone.screenshot()
            both = browser.new_page(viewport={"width": 800, "height": 760})
            images = (base64.b64encode(image).decode() for image in (before, after))
            both.set_content(
                '<body style="margin:0;display:flex;gap:20px">'
                + "".join(f'<img src="data:image/png;base64,{image}">' for image in images)
            )
            both.screenshot(path=str(file))
            browser.close()
    finally:
        demo.terminate()
        demo.wait()


def main() -> None:
    binary, folder = sys.argv[1], Path(sys.argv[2])
    picture = chat(conversation(binary))
    assert not NSEC.search(picture)
    (folder / "chat.svg").write_text(picture)
    page(binary, folder / "page.png")


if __name__ == "__main__":
    main()
