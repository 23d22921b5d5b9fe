#!/usr/bin/env bash
# Runs the tests for aarch64 under qemu-user, each in a process of its own.
#
#   run.sh SECONDS [FILTER] [RESULTS]
#
# SECONDS bound the whole run: a test that has not begun by then is named as not run. FILTER is a part
# of the tests' names. Tests that passed or were skipped according to the file RESULTS of an earlier
# run are left out. The folder `results` has the file `all` (the input of the next run) and what each
# failed test said. The last lines name all that did not pass.
#
# LIMIT (seconds for one test, default 150), JOBS (tests at once, default three for two cores: they
# wait much).
# packaging/aarch64.sh makes the folder that this script lies in.
set -euo pipefail
folder="$(cd "$(dirname "$0")" && pwd)"
begun="$(date +%s)" total="${1:?seconds}" filter="${2:-}" earlier="${3:-}"
export folder end="$((begun + total))" LIMIT="${LIMIT:-150}" results="${RESULTS:-$folder/results}"
rm -rf "$results" && mkdir -p "$results"

# The paths that are compiled into the tests.
{ read -r sources && read -r program; } <"$folder/paths"
if [ ! -e "$sources" ]; then mkdir -p "$(dirname "$sources")" && ln -s "$folder/sources" "$sources"; fi
mkdir -p "$(dirname "$program")"
cp --remove-destination "$folder/launcher" "$program"
ln -sfn "$folder/npubbot" "$program.real"

if [ -x "$folder/nats-server" ]; then export NATS_SERVER="$folder/nats-server"; fi
qemu() { "$folder/qemu" -L "$folder/root" -E "LD_PRELOAD=$folder/exec.so" "$@"; }
# The names of the tests of a program, each after the program's. Those that only --ignored runs are left out.
list() {
    comm -23 <(qemu "$folder/$1" --list 2>/dev/null | sed -n 's/: test$//p' | sort) \
        <(qemu "$folder/$1" --list --ignored 2>/dev/null | sed -n 's/: test$//p' | sort) | sed "s/^/$1 /"
}
# Runs one test, and adds a line to the results: outcome, seconds, program, name.
one() {
    local name="$2" log="$results/$1-${2//:/_}.log" since left outcome=passed status=0
    since="$(date +%s)"
    left="$((end - since < LIMIT ? end - since : LIMIT))"
    if [ "$left" -lt 3 ]; then echo "not-run 0 $1 $name" >>"$results/all" && return; fi
    timeout --kill-after 2 "$left" "$folder/qemu" -L "$folder/root" -E "LD_PRELOAD=$folder/exec.so" \
        "$folder/$1" "$name" --exact --test-threads 1 >"$log" 2>&1 </dev/null || status=$?
    case "$status" in
        0) if grep -q "^test result: ok. 1 passed" "$log"; then outcome=passed; else outcome=skipped; fi ;;
        # Killed at the end of all time is not a verdict about the test.
        124 | 137) if [ "$left" = "$LIMIT" ]; then outcome=timed-out; else outcome=not-run; fi ;;
        *) outcome=failed ;;
    esac
    echo "$outcome $(($(date +%s) - since)) $1 $name" >>"$results/all"
    if [ "$outcome" = passed ]; then rm "$log"; fi
}
export -f one

{ list it && list lib && list miner && list vault; } >"$results/list"
if [ -n "$earlier" ]; then
    awk '$1 == "passed" || $1 == "skipped" { print $3, $4 }' "$earlier" | sort >"$results/earlier"
    grep -vxFf "$results/earlier" "$results/list" >"$results/left" || true
    mv "$results/left" "$results/list"
fi
grep -F -- "$filter" "$results/list" | xargs -r -P "${JOBS:-$(($(nproc) * 3 / 2))}" -L 1 bash -c 'one "$@"' one || true
touch "$results/all"

printf '\n== tests for aarch64 under %s, %d s\n' "$("$folder/qemu" --version | head -1)" "$(($(date +%s) - begun))"
for outcome in skipped not-run timed-out failed; do
    printf '\n%s:\n' "$outcome"
    awk -v outcome="$outcome" '$1 == outcome { print "    " $3, $4, $2 " s" }' "$results/all" | sort
done
printf '\n'
for outcome in passed skipped failed timed-out not-run; do
    for program in it lib miner vault; do
        count="$(awk -v o="$outcome" -v p="$program" '$1 == o && $3 == p' "$results/all" | wc -l)"
        printf '%s %s %d\n' "$outcome" "$program" "$count"
    done
done | awk '{ printf "%s%s %s %d", (NR % 3 == 1 ? (NR > 1 ? "\n" : "") : ", "), $1, $2, $3 } END { print "" }'
! grep -qE '^(failed|timed-out|not-run)' "$results/all"
