#!/usr/bin/env bash
# Checks the page: types, unit tests, the committed build, and a real browser against a real bot
# and relay. Installs what it needs; what cannot run is named on stderr.
# NPUBBOT_BIN=path/to/npubbot adds the tests with a real bot; NPUBBOT_RELAY_BIN=path/to/nostr-relay
# names a relay that is installed already; NPUBBOT_REQUIRE_BROWSER=1 fails where a browser, a bot
# or a relay is missing.
set -euo pipefail
# A relative path is meant from where the script was called.
for name in NPUBBOT_BIN NPUBBOT_RELAY_BIN; do
    if [ -n "${!name:-}" ]; then declare -x "$name=$(realpath -s "${!name}")"; fi
done
cd "$(dirname "$0")"
step() { printf '\n== web: %s\n' "$*"; }
missing=0
not_run() { printf 'NOT RUN: %s\n' "$*" >&2; missing=1; }
finish() { exit "$((missing && ${NPUBBOT_REQUIRE_BROWSER:-0}))"; }

enough() { command -v npm >/dev/null && node -e 'const [a, b] = process.versions.node.split(".").map(Number);
    process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null; }
if ! enough; then
    not_run "the whole check of web/ (it needs Node.js 20.19 or newer with npm)"
    finish
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

step "the committed page is what the source builds"
committed="$(sha256sum dist/index.html dist/page.sha256)"
node -e 'const fs = require("fs"), zlib = require("zlib"), read = (end) => fs.readFileSync("dist/index.html" + end);
    if (!zlib.brotliDecompressSync(read(".br")).equals(read("")) || !zlib.gunzipSync(read(".gz")).equals(read("")))
        throw new Error("the compressed page is another one; commit what \"npm run build\" writes")'
npm run --silent build
if [ "$committed" != "$(sha256sum dist/index.html dist/page.sha256)" ]; then
    echo "web/dist is not what web/src builds; commit what \"npm run build\" just wrote" >&2
    exit 1
fi

step "a browser"
browser() { for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if command -v "$name"; then return; fi
done
    node -e 'const p = require("playwright").chromium.executablePath();
        if (!require("fs").existsSync(p)) process.exit(1); console.log(p)'; }
have="${NPUBBOT_CHROMIUM:-$(browser || true)}"
has_firefox() { [ -n "${NPUBBOT_FIREFOX:-}" ] || command -v firefox-esr || command -v firefox; }
if { [ -z "$have" ] || ! has_firefox >/dev/null; } && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    wanted="$([ -n "$have" ] || echo chromium) $(has_firefox >/dev/null || echo firefox-esr)"
    # shellcheck disable=SC2086
    { apt-get update -q && apt-get install -qy --no-install-recommends $wanted; } >/dev/null 2>&1 || true
    have="${NPUBBOT_CHROMIUM:-$(browser || true)}"
fi
if [ -z "$have" ]; then
    npx playwright install chromium-headless-shell >/dev/null 2>&1 || true
    have="$(browser || true)"
fi
if [ -z "$have" ]; then
    not_run "the browser tests of web/ (no Chromium found, and none could be installed)"
    finish
fi

step "a relay"
# The one of tests/interop.rs, or one of our own; 18 seconds to install.
for known in ../target/interop/venv/bin/nostr-relay .relay/bin/nostr-relay; do
    if [ -z "${NPUBBOT_RELAY_BIN:-}" ] && [ -x "$known" ]; then
        NPUBBOT_RELAY_BIN="$(realpath -s "$known")"
    fi
done
if [ -z "${NPUBBOT_RELAY_BIN:-}" ] && command -v python3 >/dev/null; then
    if python3 -m venv .relay && .relay/bin/pip install -q nostr-relay==1.14; then
        NPUBBOT_RELAY_BIN="$PWD/.relay/bin/nostr-relay"
    fi
fi
if [ -z "${NPUBBOT_RELAY_BIN:-}" ]; then
    not_run "asking a real bot in a browser (nostr-relay 1.14 could not be installed)"
else
    echo "$NPUBBOT_RELAY_BIN"
    export NPUBBOT_RELAY_BIN
fi
if ! has_firefox >/dev/null; then not_run "the tests in Firefox (there is none)"; fi
if [ -z "${NPUBBOT_BIN:-}" ]; then not_run "the browser tests with a real bot (NPUBBOT_BIN names none)"; fi

step "the browser tests"
NPUBBOT_CHROMIUM="$have" npm run --silent test:browser
echo "screenshots of each step are in web/shots/"
finish
