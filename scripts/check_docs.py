#!/usr/bin/env python3
"""Checks the documentation. Prints each fault with file and line; exits with 1 if there is one.

- Links between files of the repository lead to a file, and to a heading where they name one.
- Paths of documents that code and comments name exist.
- Names of tests and settings that the documentation quotes exist in the code.
- Each row of the threat model has a bound, who is refused when it is full and what that costs, and
  a place, constants and tests that exist.
- Prose lines have at most 100 characters.
- Each `just` recipe that CONTRIBUTING.md names exists, and each recipe is named there.
- Tables of times are those of the rates in docs/performance.md, and so is every rate of an H100 or
  H200 that another page or `npubbot explain` has. `--write` writes the tables again.
- `docs/` has at most 45 pages, and all Markdown together at most 45,000 words.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Documents whose `quoted_names` need not exist in the code, because they describe an earlier day.
DATED = ("docs/decisions/", "docs/developers/words.md")
MAX_CHARACTERS = 100
MAX_PAGES, MAX_WORDS = 45, 45_000
TIMES = re.compile(r"<!-- times: (.*) -->\n(.*?)<!-- end of times -->", re.S)

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
        if len(line) > MAX_CHARACTERS and not line.startswith("|") and "](" not in line:
            fault(path, number, f"{len(line)} characters; at most {MAX_CHARACTERS}")


def place_texts(name: str) -> list[str]:
    """Texts of the file or folder that a place of the threat model names: a path in the repository,
    or within the sources of a package, without `.rs`."""
    package, _, rest = name.partition("/")
    for start in ["src", "miner/src", "fleet/src", ".", *([f"{package}/src"] if rest else [])]:
        base = ROOT / start / (rest if start == f"{package}/src" else name)
        for path in (base.with_name(base.name + ".rs"), base / "mod.rs", base):
            if path.is_file():
                return [path.read_text()]
        if base.is_dir():
            return [path.read_text() for path in base.rglob("*.rs")]
    return []


def check_place(path: Path, number: int, cell: str, settings: str) -> None:
    """A cell of places, each with names that it defines, or settings."""
    for part in cell.split(";"):
        texts: list[str] = []
        for name in re.findall(r"`([^`]+)`", part):
            word = re.escape(name.split("::")[-1])
            defined = rf"\b(?:const|static|fn|struct|enum|TABLE|TRIGGER) {word}\b|^ +(?:pub )?{word}(?::|,| =)"
            if any(re.search(defined, text, re.M) for text in texts):
                continue
            if found := place_texts(name):
                texts += found
            elif texts or not re.search(rf"^(?:# )?{word} =", settings, re.M):
                fault(path, number, f"{name} is not where the row says")


def check_bounds(tests: set[str]) -> None:
    """Each row of the threat model: no empty cell, a place that exists, and tests or benches."""
    path = ROOT / "docs/threat-model.md"
    settings, header = (ROOT / "relays.toml").read_text(), ""
    for number, line in prose(path.read_text()):
        if re.match(r"\| (?:resource|process) ", line):
            header = line
        if not line.startswith("|") or re.match(r"\| (?:resource|process|---) ", line):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        # The table of processes has no bounds.
        is_bound = len(cells) == 6
        if not all(cells) or not (is_bound or len(cells) == 4 and "lost if" in header):
            fault(path, number, "a row has six cells: resource, bound, who is refused, cost, place, test")
            continue
        if is_bound:
            check_place(path, number, cells[4], settings)
        names = re.findall(r"`([^`]+)`", cells[-1])
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


def rates() -> dict[str, tuple[float, float]]:
    """Rate with one pattern, in candidates a second, and watts of each machine of performance.md."""
    found: dict[str, tuple[float, float]] = {}
    for _, line in prose((ROOT / "docs/performance.md").read_text()):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        # The table of measured rates has nine columns, that of computed ones five.
        places = {9: (1, 6), 5: (3, 4)}.get(len(cells))
        if line.startswith("|") and places and all(re.fullmatch(r"[\d.]+", cells[at]) for at in places):
            found.setdefault(cells[0], (float(cells[places[0]]) * 1e9, float(cells[places[1]])))
            # 131.4 G/s by 132 multiprocessors at 1.98 GHz, as the page says.
            if cells[1] and len(cells) == 5 and round(131.4 / 132 / 1.98 * float(cells[1]) * float(cells[2])) != float(cells[3]):
                fault(ROOT / "docs/performance.md", 1, f"the rate of {cells[0]} is not computed as the page says")
    return found


def two_digits(number: float) -> str:
    return f"{float(f'{number:.2g}'):,.{1 if number < 9.95 else 0}f}"


def span(seconds: float) -> str:
    units = [("years", 31_557_600), ("days", 86_400), ("h", 3_600), ("min", 60), ("s", 1)]
    for unit, size in units:
        if seconds >= 1.5 * size:
            return f"{two_digits(seconds / size)} {unit}"
    return "under 1.5 s"


def energy(joules: float) -> str:
    hours = joules / 3_600
    unit, count = ("kWh", hours / 1_000) if hours >= 950 else ("Wh", hours)
    return f", {two_digits(count)} {unit}" if hours >= 0.095 else ""


def table_of_times(machines: list[str], known: dict[str, tuple[float, float]]) -> str:
    """Average time, and electricity from a tenth of a watt hour on, for each length of a prefix."""
    heads = [name.removeprefix("NVIDIA ") for name in machines]
    rows = [f"| characters | 1 key in | {' | '.join(heads)} |", "| --- |" + " --- |" * (len(heads) + 1)]
    scales = [("T", 1e12), ("G", 1e9)]
    for length in range(6, 13):
        keys = 32.0**length
        scale, size = next((scale, size) for scale, size in scales if keys >= size)
        costs = (known[name] for name in machines)
        cells = [span(keys / rate) + energy(keys / rate * watts) for rate, watts in costs]
        rows.append(f"| {length} | {two_digits(keys / size)} {scale} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def check_rates(documents: list[Path], write: bool) -> None:
    known = rates()
    cards = {name.removeprefix("NVIDIA "): rate for name, (rate, _) in known.items()}
    for path in documents:
        text = path.read_text()
        for times in TIMES.finditer(text):
            table = f"\n{table_of_times(times.group(1).split(', '), known)}\n"
            if times.group(2) != table and write:
                path.write_text(text[: times.start(2)] + table + text[times.end(2) :])
            elif times.group(2) != table:
                fault(path, text[: times.start()].count("\n") + 1, "the times are not those of docs/performance.md")
    named = [path for path in documents if not path.relative_to(ROOT).as_posix().startswith(DATED)]
    for path in [*named, ROOT / "src/cli/explain.rs"]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for card, rate in re.findall(r"NVIDIA (H\d00)(?:,|\", Rates \{ top_words: Rate\() ?(\d+)(?: G/s|e9)", line):
                if int(rate) != int(cards[card] / 1e9):
                    fault(path, number, f"an {card} does {cards[card] / 1e9:g} G/s, by docs/performance.md")


def check_size(documents: list[Path]) -> None:
    pages = sum(path.relative_to(ROOT).as_posix().startswith("docs/") for path in documents)
    words = sum(len(path.read_text().split()) for path in documents)
    if pages > MAX_PAGES:
        fault(ROOT / "docs/README.md", 1, f"docs has {pages} pages; at most {MAX_PAGES}")
    if words > MAX_WORDS:
        fault(ROOT / "docs/README.md", 1, f"{words} words of Markdown; at most {MAX_WORDS}")


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
    check_rates(documents, "--write" in sys.argv)
    check_size(documents)
    for text in faults:
        print(text)
    print(f"{len(documents)} documents, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
