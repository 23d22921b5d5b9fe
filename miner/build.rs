//! Compiles `kernels/` with NVRTC if the variable `NPUBBOT_NVRTC` names that library, and always
//! embeds the sources for NVRTC at run time. Generates Rust constants from `kernels/constants.h`.
//!
//! `NPUBBOT_NVRTC` is a path, or a name that the system's loader finds (`libnvrtc.so.12`). Releases
//! take version 12.9, whose code every driver from 525 on loads. `NPUBBOT_CUDA_ARCHS` (such as `90`
//! or `80+ptx,90`) limits the architectures, to build faster while developing; `none` skips NVRTC.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "cargo reads what a build script prints")]

#[path = "src/search/cuda/nvrtc.rs"]
mod nvrtc;

use nvrtc::Nvrtc;
use std::collections::HashSet;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{env, fs};

/// Compute capabilities that get machine code. GPUs that are newer than all of them run the PTX.
const ARCHS: &str = "75,80,86,89,90,100+ptx,120";

fn main() {
    println!("cargo::rerun-if-changed=kernels");
    println!("cargo::rerun-if-changed=src/search/cuda/nvrtc.rs");
    for name in ["NPUBBOT_NVRTC", "NPUBBOT_CUDA_ARCHS"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    if env::var_os("CARGO_FEATURE_SEARCH").is_none() {
        return;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let source = flatten(Path::new("kernels/search.cu"), &mut HashSet::new());
    let write = |name: &str, text: &[u8]| fs::write(out.join(name), text).expect("OUT_DIR can be written");
    write("kernels.cu", source.as_bytes());
    write("constants.rs", constants("kernels/constants.h").as_bytes());

    let archs = env::var("NPUBBOT_CUDA_ARCHS").unwrap_or_else(|_| ARCHS.to_owned());
    let library = env::var_os("NPUBBOT_NVRTC").filter(|name| !name.is_empty() && archs != "none");
    let compiled = library.map(|name| -> Result<_, String> {
        let nvrtc = Nvrtc::load(&name).unwrap_or_else(|| Err(format!("there is no {}", name.display())))?;
        Ok((compile(&nvrtc, &archs, &source)?, nvrtc))
    });
    let (mut images, mut reports, mut built) = (String::new(), String::new(), "none".to_owned());
    match compiled {
        Some(Ok((compiled, nvrtc))) => {
            built.clear();
            for (arch, has_ptx, compiled) in &compiled {
                let mut embed = |name: String, is_ptx: bool, bytes: &[u8]| {
                    write(&name, bytes);
                    images += &format!(
                        "Image {{ architecture: {arch}, is_ptx: {is_ptx}, bytes: include_bytes!({name:?}) }}, "
                    );
                };
                embed(format!("{arch}.cubin"), false, &compiled.machine_code);
                if *has_ptx {
                    embed(format!("{arch}.ptx"), true, &compiled.ptx);
                }
                reports += &compiled.log;
                reports.push('\n');
                built += &format!("{arch}{} ", if *has_ptx { "+ptx" } else { "" });
            }
            built += &format!("by {}", nvrtc.name());
        }
        Some(Err(reason)) => {
            println!("cargo::warning=the CUDA kernels are left to run-time compilation: {}", reason.replace('\n', " "));
        }
        None => {}
    }
    write("images.rs", format!("&[{images}]").as_bytes());
    write("assembler.txt", reports.as_bytes());
    println!("cargo::rustc-env=NPUBBOT_KERNELS_BUILT={built}");
}

/// Compiles for each architecture of the list, several at a time. Returns each with whether its PTX
/// is wanted.
fn compile(nvrtc: &Nvrtc, archs: &str, source: &str) -> Result<Vec<(u32, bool, nvrtc::Compiled)>, String> {
    let parse = |entry: &str| {
        let (number, has_ptx) = entry.strip_suffix("+ptx").map_or((entry, false), |number| (number, true));
        number.parse::<u32>().map(|number| (number, has_ptx)).map_err(|_| format!("`{entry}` is not an architecture"))
    };
    let mut waiting: Vec<_> = archs.split(',').map(|entry| parse(entry.trim())).collect::<Result<_, _>>()?;
    // The last to begin are the quickest.
    waiting.sort_unstable();
    let (waiting, results) = (Mutex::new(waiting), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let Some((arch, has_ptx)) = waiting.lock().expect("no thread panics").pop() else { return };
            let compiled = compile_once(nvrtc, source, arch);
            results.lock().expect("no thread panics").push((arch, has_ptx, compiled));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().expect("no thread panics");
    results.sort_unstable_by_key(|&(arch, ..)| arch);
    let checked = results.into_iter().map(|(arch, has_ptx, compiled)| match compiled {
        Ok(compiled) => Ok((arch, has_ptx, compiled)),
        Err(reason) => Err(format!("{} for {arch}: {reason}", nvrtc.name())),
    });
    checked.collect()
}

/// Compiles for one architecture, or takes what an earlier build left in the folder that
/// `NPUBBOT_KERNEL_CACHE` names: the code is the same for every system.
fn compile_once(nvrtc: &Nvrtc, source: &str, arch: u32) -> Result<nvrtc::Compiled, String> {
    let options = ["--std=c++17", "--ptxas-options=-v"];
    let compile = || nvrtc.compile(source, &format!("sm_{arch}"), &options);
    let Some(cache) = env::var_os("NPUBBOT_KERNEL_CACHE") else { return compile() };
    let mut hasher = DefaultHasher::new();
    (source, nvrtc.name(), options).hash(&mut hasher);
    let stem = Path::new(&cache).join(format!("sm_{arch}-{:016x}", hasher.finish()));
    let cached = || -> std::io::Result<Result<nvrtc::Compiled, String>> {
        // Builds for other targets that run now wait here.
        let lock = File::create(stem.with_extension("lock"))?;
        lock.lock()?;
        let [machine_code, ptx, log] = ["cubin", "ptx", "log"].map(|end| stem.with_extension(end));
        if !log.exists() {
            match compile() {
                Ok(compiled) => {
                    fs::write(&machine_code, compiled.machine_code)?;
                    fs::write(&ptx, compiled.ptx)?;
                    fs::write(&log, compiled.log)?;
                }
                Err(reason) => return Ok(Err(reason)),
            }
        }
        let (machine_code, ptx, log) = (fs::read(machine_code)?, fs::read(ptx)?, fs::read_to_string(log)?);
        Ok(Ok(nvrtc::Compiled { machine_code, ptx, log }))
    };
    cached().unwrap_or_else(|error| Err(format!("{}: {error}", stem.display())))
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
