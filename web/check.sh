#!/usr/bin/env bash
# Everything a change to the page must pass. Installs what it needs; what cannot run is named on stderr.
# NPUBBOT_BIN=path/to/npubbot adds a real search; NPUBBOT_REQUIRE_BROWSER=1 fails where no browser can be had.
set -euo pipefail
# A relative path is meant from where the script was called.
if [ -n "${NPUBBOT_BIN:-}" ]; then NPUBBOT_BIN="$(realpath "$NPUBBOT_BIN")"; export NPUBBOT_BIN; fi
cd "$(dirname "$0")"
step() { printf '\n== web: %s\n' "$*"; }
not_run() { printf 'NOT RUN: %s\n' "$*" >&2; }

enough() { command -v npm >/dev/null && node -e 'const [a, b] = process.versions.node.split(".").map(Number);
    process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null; }
if ! enough; then
    not_run "the whole check of web/ (it needs Node.js 20.19 or newer with npm)"
    exit "${NPUBBOT_REQUIRE_BROWSER:-0}"
fi

step "libraries"
npm ci --no-audit --no-fund

step "types"
npm run --silent typecheck

step "vectors are what their script writes"
if command -v python3 >/dev/null; then
    python3 tests/vectors.py | cmp - tests/vectors.json
else
    not_run "vectors.py against vectors.json (no python3)"
fi

step "unit tests"
npm test

step "build, twice the same"
npm run --silent build
first="$(sha256sum dist/index.html)"
npm run --silent build
test "$first" = "$(sha256sum dist/index.html)"

step "a browser"
browser() { for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if command -v "$name"; then return; fi
done
    node -e 'const p = require("playwright").chromium.executablePath();
        if (!require("fs").existsSync(p)) process.exit(1); console.log(p)'; }
have="${NPUBBOT_CHROMIUM:-$(browser || true)}"
if [ -z "$have" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    { apt-get update -q && apt-get install -qy --no-install-recommends chromium; } >/dev/null 2>&1 || true
    have="$(browser || true)"
fi
if [ -z "$have" ]; then
    npx playwright install chromium-headless-shell >/dev/null 2>&1 || true
    have="$(browser || true)"
fi
if [ -z "$have" ]; then
    not_run "the browser test of web/ (no Chromium found, and none could be installed)"
    exit "${NPUBBOT_REQUIRE_BROWSER:-0}"
fi
NPUBBOT_CHROMIUM="$have" npm run --silent test:browser
