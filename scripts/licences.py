#!/usr/bin/env python3
"""Prints the licences of everything that is compiled into the program for a target.

    scripts/licences.py TARGET

Each text is printed once, after the crates that it is for. A crate whose package has no text gets
the standard one of its licence, with its authors; a licence that has none here is an error. The
licences that are allowed are in deny.toml.

cargo-about, the kept tool for this, leaves out NOTICE files (its issue 195, open on 2026-11-23), which
the Apache licence wants passed on. It was read about, not tried.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

MIT = """\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction,
including without limitation the rights to use, copy, modify, merge, publish, distribute,
sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial
portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES
OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""
# Begins the names of files with a licence.
NAMES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")
# Not texts of a licence although they are named so.
NO_TEXT = (".rs", ".py", ".sh", ".json", ".html", ".toml")
# Deepest folder of a package in which a part of it may have a licence of its own.
DEEPEST = 4
# Packages whose text is the standard one of a licence without names in it.
STANDARD = {"Apache-2.0": ("aes", "LICENSE-APACHE"), "CC0-1.0": ("secp256k1", "LICENSE")}


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def crates(target: str) -> list[dict]:
    """The packages of others in the program: neither those of tests nor those of build scripts."""
    metadata = json.loads(output("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    todo, seen = [metadata["resolve"]["root"]], set()
    while todo:
        this = todo.pop()
        if this in seen:
            continue
        seen.add(this)
        for dependency in nodes[this]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                todo.append(dependency["pkg"])
    found = [packages[this] for this in seen if packages[this]["source"]]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def texts(package: dict) -> list[tuple[str, str]]:
    """The licences in a package, each with its place."""
    top, found = Path(package["manifest_path"]).parent, []
    for folder, folders, files in os.walk(top):
        below = Path(folder).relative_to(top)
        folders[:] = sorted(folders) if len(below.parts) < DEEPEST else []
        for name in sorted(files):
            if name.upper().startswith(NAMES) and not name.endswith(NO_TEXT):
                text = (Path(folder) / name).read_text(encoding="utf-8", errors="replace")
                # A licence to choose instead of others is not chosen if we may not use it.
                is_refused = "GNU GENERAL PUBLIC LICENSE" in text[:500] and " OR " in (package["license"] or "")
                # A link to the file of another folder, on systems that have no links.
                if len(text.split()) > 3 and not is_refused:
                    found.append(((below / name).as_posix(), text))
    return found


def standard(package: dict, all_texts: dict[str, list[tuple[str, str]]]) -> str:
    """The text for a package that has none."""
    licence = package["license"] or ""
    if "MIT" in licence.replace("/", " ").split():
        return f"Copyright (c) {', '.join(package['authors']) or 'the authors'}\n\n{MIT}"
    if licence in STANDARD:
        name, file = STANDARD[licence]
        return dict(all_texts[name])[file]
    sys.exit(f"{package['name']} {package['version']} has no text of its licence, {licence}; add one to {sys.argv[0]}")


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    packages = crates(sys.argv[1])
    all_texts = {package["name"]: texts(package) for package in packages}
    users: dict[str, list[str]] = defaultdict(list)
    for package in packages:
        named = f"{package['name']} {package['version']} ({package['license']})"
        for place, text in all_texts[package["name"]] or [("", standard(package, all_texts))]:
            key = "\n".join(line.rstrip() for line in text.strip().splitlines())
            users[key].append(f"{named}, {place}" if "/" in place else named)
    print(f"npubbot is under the MIT licence (LICENSE). {len(packages)} crates of others are in this program, under the")
    print("licences below. Of Rust's standard library tells COPYRIGHT-library.html. SQLite, which is in it")
    print("too, is in the public domain.")
    for text, named in users.items():
        print("\n" + "=" * 80)
        print("\n".join(dict.fromkeys(named)))
        print("=" * 80 + "\n")
        print(text)


main()
