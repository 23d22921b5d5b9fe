//! Compiles `kernels/` with nvcc if it is installed, and always embeds the sources for NVRTC.
//! Generates Rust constants from `kernels/constants.h`.
//!
//! `NVCC` or `CUDA_HOME` names the compiler; otherwise it is searched in `PATH`.
//! `NPUBBOT_CUDA_ARCHS` (such as `90` or `86,90`) limits the architectures, to build faster while
//! developing; `NPUBBOT_CUDA_ARCHS=none` skips nvcc.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "cargo reads what a build script prints")]

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Compute capabilities that get machine code.
const ARCHS: &str = "75,80,86,89,90,100,120";
/// Pairs of architectures whose PTX differs only in the name, so it is compiled once for both. The
/// sources compare the architecture only with 8.0 and 10.0
/// (`the_kernels_ask_for_no_architecture_that_shares_the_ptx_of_another`).
const SAME_PTX: [(&str, &str); 3] = [("86", "80"), ("89", "80"), ("120", "100")];
/// The architecture that also gets PTX, which any newer GPU can run: the first that supports all
/// instructions we use.
const PTX_ARCH: &str = "80";

fn main() {
    println!("cargo::rerun-if-changed=kernels");
    for name in ["NVCC", "CUDA_HOME", "NPUBBOT_CUDA_ARCHS"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    println!("cargo::rustc-check-cfg=cfg(npubbot_fatbin)");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let source = out.join("kernels.cu");
    let flat = flatten(Path::new("kernels/search.cu"), &mut HashSet::new());
    fs::write(&source, flat).expect("OUT_DIR can be written");
    fs::write(out.join("constants.rs"), constants("kernels/constants.h")).expect("OUT_DIR can be written");

    let archs = env::var("NPUBBOT_CUDA_ARCHS").unwrap_or_else(|_| ARCHS.to_owned());
    let report = out.join("machine_code.rs");
    fs::write(&report, machine_code("")).expect("OUT_DIR can be written");
    let built = match (archs.as_str(), find_nvcc()) {
        ("none", _) => "none".to_owned(),
        (_, None) => "none".to_owned(),
        (_, Some(nvcc)) => match compile(&nvcc, &archs, &source, &out.join("kernels.fatbin")) {
            Ok((built, said)) => {
                println!("cargo::rustc-cfg=npubbot_fatbin");
                fs::write(&report, machine_code(&said)).expect("OUT_DIR can be written");
                built
            }
            Err(reason) => {
                println!("cargo::warning=the CUDA kernels are left to run-time compilation: {reason}");
                "none".to_owned()
            }
        },
    };
    println!("cargo::rustc-env=NPUBBOT_KERNELS_BUILT={built}");
}

fn find_nvcc() -> Option<PathBuf> {
    if let Some(nvcc) = env::var_os("NVCC") {
        return Some(PathBuf::from(nvcc));
    }
    let home = env::var_os("CUDA_HOME").map(|home| PathBuf::from(home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    home.into_iter().chain(env::split_paths(&path)).map(|folder| folder.join("nvcc")).find(|nvcc| nvcc.is_file())
}

/// Compiles for the architectures in `archs` that this nvcc knows. Returns their names, and the
/// assembler's report on each kernel.
fn compile(nvcc: &Path, archs: &str, source: &Path, fatbin: &Path) -> Result<(String, String), String> {
    let run = |command: &mut Command| {
        let output = command.output().map_err(|error| format!("{} does not start: {error}", nvcc.display()))?;
        let [said, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        if output.status.success() { Ok((said, errors)) } else { Err(format!("{} failed:\n{errors}", nvcc.display())) }
    };
    let (known, _) = run(Command::new(nvcc).arg("--list-gpu-code"))?;
    let archs: Vec<&str> =
        archs.split(',').map(str::trim).filter(|arch| known.lines().any(|code| code == format!("sm_{arch}"))).collect();
    let mut command = Command::new(nvcc);
    command.args(["-fatbin", "-O3", "-std=c++17", "--threads", "0", "-Xptxas", "-v", "-o"]).arg(fatbin).arg(source);
    for arch in &archs {
        let ptx = SAME_PTX.iter().find(|(same, _)| same == arch).map_or(*arch, |(_, ptx)| ptx);
        command.arg(format!("-gencode=arch=compute_{ptx},code=sm_{arch}"));
    }
    if archs.is_empty() || archs.len() > 1 {
        command.arg(format!("-gencode=arch=compute_{PTX_ARCH},code=compute_{PTX_ARCH}"));
    }
    let (_, said) = run(&mut command)?;
    Ok((archs.join(" "), said))
}

/// The assembler's report as a Rust table of `KernelReport`.
///
/// The report first names a kernel (`Compiling entry function 'plain_one' for 'sm_90'`), then its
/// spills (`44 bytes spill loads`) and registers (`Used 128 registers`).
fn machine_code(report: &str) -> String {
    let between = |line: &str, before: &str, after: &str| -> Option<String> {
        let (_, rest) = line.split_once(before)?;
        rest.split_once(after).map(|(inner, _)| inner.to_owned())
    };
    let (mut rows, mut kernel, mut spilled) = (Vec::new(), None, None);
    for line in report.lines() {
        let name = between(line, "Compiling entry function '", "'").zip(between(line, "for 'sm_", "'"));
        if name.is_some() {
            (kernel, spilled) = (name, None);
        } else if let Some(bytes) = between(line, "spill stores, ", " bytes spill loads") {
            // The first such line is the kernel's own. Those of the functions that it calls follow.
            spilled = spilled.or(Some(bytes));
        } else if let Some(registers) = between(line, "Used ", " registers")
            && let Some(((kernel, arch), spilled)) = kernel.take().zip(spilled.take())
        {
            rows.push(format!(
                "KernelReport {{ arch: {arch:?}, kernel: {kernel:?}, registers: {registers}, spilled: {spilled} }}"
            ));
        }
    }
    // nvcc's threads report in an order that differs from build to build.
    rows.sort();
    format!("&[{}]", rows.join(", "))
}

/// Generates a Rust constant for each `#define NAME number` of a header.
fn constants(header: &str) -> String {
    let text = fs::read_to_string(header).unwrap_or_else(|error| panic!("{header}: {error}"));
    let mut comment = String::new();
    let mut constants = String::new();
    for line in text.lines() {
        if let Some(words) = line.strip_prefix("// ") {
            comment += &format!("/// {words}\n");
        } else if let Some((name, value)) = line.strip_prefix("#define ").and_then(|rest| rest.split_once(' ')) {
            let value: u32 = value.parse().unwrap_or_else(|_| panic!("{header}: {name} is no plain number"));
            constants += &format!("{comment}pub const {name}: u32 = {value};\n");
            comment.clear();
        } else if line.is_empty() {
            comment.clear();
        }
    }
    constants
}

/// Returns the source with each file of an `#include "…"` put in its place, once per file. NVRTC
/// reads no files, so it needs a single text.
fn flatten(path: &Path, seen: &mut HashSet<PathBuf>) -> String {
    if !seen.insert(path.to_owned()) {
        return String::new();
    }
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut flat = String::new();
    for line in text.lines() {
        let included = line.strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"'));
        match included {
            Some(name) => flat += &flatten(&path.with_file_name(name), seen),
            None if line == "#pragma once" => {}
            None => flat += &format!("{line}\n"),
        }
    }
    flat
}
