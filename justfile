# The commands of CONTRIBUTING.md. `just` lists them; `cargo install just` or
# `pip install rust-just` installs just.

# Tools for the pictures, made when they are first needed.
venv := justfile_directory() / "target/docs-venv"

# Lists the recipes.
default:
    @just --list

# Builds the release binary. NPUBBOT_CUDA_ARCHS=none leaves the GPU kernels to run time.
build:
    cargo build --release

# Runs the tests. Arguments select some: just test relays
test *ARGS:
    cargo test {{ ARGS }}

# Runs the tests that need a GPU, on a machine that has one.
gpu-test:
    cargo test --release gpu -- --nocapture --test-threads 1

# Runs the long form of a test: just long-test fifty_jobs_survive
long-test NAME:
    cargo test --release {{ NAME }} -- --ignored --nocapture --test-threads 1

# Judges the promised times under load: each figure beside its bar, in a release build.
load:
    NPUBBOT_BENCH=load cargo test --release --test it

# Judges what strangers and an idle bot may cost.
economy:
    NPUBBOT_BENCH=economy cargo test --release --test it

# Judges the times of answers, starts and stops.
latency:
    NPUBBOT_BENCH=latency cargo test --release --test it

# Changes the code in one place at a time and shows which changes no unit test notices (needs
# cargo-mutants). 0/20 is the first of twenty samples, each spread over the rooms of .cargo/mutants.toml.
mutants SAMPLE="0/20":
    NPUBBOT_CUDA_ARCHS=none cargo mutants --workspace --shard {{ SAMPLE }} --sharding round-robin

# Measures this machine: just bench --patterns 1000
bench *ARGS:
    cargo run --release -- bench {{ ARGS }}

# Measures the CPU kernels in turn, on one thread: just bench-kernels 3 3
bench-kernels *ARGS:
    cargo run --release -p npubbot-miner --example cpu_kernels -- {{ ARGS }}

# Feeds one target of the fuzzer for some seconds (needs nightly Rust and cargo-fuzz).
fuzz TARGET="unwrap" SECONDS="60":
    mkdir -p fuzz/corpus/{{ TARGET }}
    cargo +nightly fuzz run -s none {{ TARGET }} fuzz/corpus/{{ TARGET }} fuzz/seeds/{{ TARGET }} -- \
        -max_total_time={{ SECONDS }} -rss_limit_mb=1024

# Format, lints, dependencies.
lint:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings
    cargo deny --locked check bans licenses sources

# API documentation, and the checks of links and names in docs/.
docs:
    RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" \
        cargo doc --no-deps --document-private-items
    python3 scripts/check_docs.py

# Everything that a change must pass, as CI runs it.
ci:
    .ci/run

# Builds the files of a release: packages, sums, SBOM. `just release --twice` compares two builds.
release *ARGS:
    packaging/release.sh {{ ARGS }}

# Installs the Debian package of the release build in a clean Debian 12, runs the container, and
# lives an operator's life on booted Debian 12 and 13 (needs root; 8 minutes).
check-packages: build
    packaging/check.sh target/release/npubbot
    packaging/boot.sh target/release/npubbot

# Builds the program for Windows and runs it under Wine; --units also runs unit tests there.
check-windows *ARGS:
    packaging/windows.sh {{ ARGS }}

# Builds tests for aarch64 and runs them under qemu-user: just check-arm -p npubbot-miner --lib
# Needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user-static. Tests that start programs
# also need the kernel's binfmt_misc.
check-arm *ARGS:
    rustup target add aarch64-unknown-linux-gnu
    NPUBBOT_CUDA_ARCHS=none CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu" \
        cargo test --locked --target aarch64-unknown-linux-gnu {{ ARGS }}

# Draws the README's chat and page again, from `npubbot demo` (needs Chromium).
pictures: build
    test -x {{ venv }}/bin/playwright || \
        { python3 -m venv {{ venv }} && {{ venv }}/bin/pip install -q playwright==1.57.0; }
    {{ venv }}/bin/python scripts/draw_pictures.py target/release/npubbot docs/images
