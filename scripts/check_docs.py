#!/usr/bin/env python3
"""Checks the documentation. Prints each fault with file and line; exits with 1 if there is one.

- Links between files of the repository lead to a file, and to a heading where they name one.
- Paths of documents that code and comments name exist.
- Names of tests and settings that the documentation quotes exist in the code.
- Each row of the threat model has a bound, a place and a test that exists.
- Prose lines have at most 100 characters.
- Each `just` recipe that CONTRIBUTING.md names exists, and each recipe is named there.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Documents whose `quoted_names` need not exist in the code, because they describe an earlier day.
DATED = ("docs/decisions/", "docs/developers/words.md")
MOST_CHARACTERS = 100

faults: list[str] = []


def fault(path: Path, line: int, text: str) -> None:
    faults.append(f"{path.relative_to(ROOT)}:{line}: {text}")


def tracked() -> list[Path]:
    """Files that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in (ROOT / name for name in names.splitlines()) if path.is_file()]


def prose(text: str) -> list[tuple[int, str]]:
    """Numbered lines outside code blocks."""
    lines, in_code = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            lines.append((number, line))
    return lines


def anchors(path: Path) -> set[str]:
    """Headings as the anchors that GitHub makes of them."""
    found: set[str] = set()
    for _, line in prose(path.read_text()):
        if heading := re.match(r"#{1,6} (.*)", line):
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading.group(1))
            found.add(re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-"))
    return found


def check_links(path: Path, lines: list[tuple[int, str]]) -> None:
    for number, line in lines:
        line = re.sub(r"`[^`]*`", "", line)
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = (path.parent / name).resolve() if name else path
            if not file.exists():
                fault(path, number, f"the link {target} leads nowhere")
            elif anchor and file.suffix == ".md" and anchor not in anchors(file):
                fault(path, number, f"{file.name} has no heading #{anchor}")


def check_names(path: Path, lines: list[tuple[int, str]], words: set[str]) -> None:
    for number, line in lines:
        for name in re.findall(r"`([a-z0-9]+(?:_[a-z0-9]+){2,})`", line):
            if name not in words:
                fault(path, number, f"`{name}` is not in the code")


def check_paths(path: Path, lines: list[tuple[int, str]]) -> None:
    for number, line in lines:
        for name in re.findall(r"\bdocs/[\w./-]+\.(?:md|svg|service)", re.sub(r"\]\([^)]*\)", "", line)):
            if not (ROOT / name).exists():
                fault(path, number, f"{name} does not exist")


def check_lengths(path: Path, lines: list[tuple[int, str]]) -> None:
    for number, line in lines:
        if len(line) > MOST_CHARACTERS and not line.startswith("|") and "](" not in line:
            fault(path, number, f"{len(line)} characters; at most {MOST_CHARACTERS}")


def check_bounds(tests: set[str]) -> None:
    """Each row of the threat model: no empty cell, and in the last one tests or benches."""
    path = ROOT / "docs/threat-model.md"
    for number, line in prose(path.read_text()):
        if not line.startswith("|") or re.match(r"\| (?:resource|process|---) ", line):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != 4 or not all(cells):
            fault(path, number, "a row has four cells: resource, bound, place, test")
            continue
        names = re.findall(r"`([^`]+)`", cells[3])
        if not names:
            fault(path, number, "no test is named")
        for name in names:
            is_bench = name.startswith("benches/") and (ROOT / name).exists()
            if name not in tests and not is_bench:
                fault(path, number, f"no test is named {name}")


def test_names(files: list[Path]) -> set[str]:
    """Functions with `#[test]` or in a table of `tests/it`."""
    names: set[str] = set()
    for path in files:
        if path.suffix == ".rs":
            text = path.read_text()
            attribute = r"#\[(?:tokio::)?test[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*"
            names.update(re.findall(attribute + r"(?:async )?fn (\w+)", text))
            names.update(re.findall(r"\btest!\((\w+)\)", text))
    return names


def check_recipes() -> None:
    contributing = ROOT / "CONTRIBUTING.md"
    recipes = set(re.findall(r"^([a-z][a-z-]*)(?: [^:]*)?:(?!=)", (ROOT / "justfile").read_text(), re.M))
    named = set(re.findall(r"\bjust ([a-z][a-z-]*)", contributing.read_text()))
    for name in sorted(named - recipes):
        fault(contributing, 1, f"the justfile has no recipe {name}")
    for name in sorted(recipes - named - {"default"}):
        fault(contributing, 1, f"the recipe {name} is not named here")


def main() -> int:
    files = tracked()
    code = [
        path
        for path in files
        if path.suffix in {".rs", ".toml", ".cuh", ".cu", ".h", ".cpp", ".py", ".sh", ".sql"}
    ]
    words: set[str] = set()
    for path in code:
        text = path.read_text()
        words.update(re.findall(r"\w+", text))
        check_paths(path, list(enumerate(text.splitlines(), 1)))
    documents = [path for path in files if path.suffix == ".md"]
    for path in documents:
        lines = prose(path.read_text())
        check_links(path, lines)
        name = path.relative_to(ROOT).as_posix()
        if name.startswith("docs/") or "/" not in name:
            if not name.startswith(DATED):
                check_names(path, lines, words)
                check_paths(path, lines)
            check_lengths(path, lines)
    check_bounds(test_names(files))
    check_recipes()
    for text in faults:
        print(text)
    print(f"{len(documents)} documents, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
