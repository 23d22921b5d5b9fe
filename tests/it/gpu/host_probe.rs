//! `kernels/host_probe.cpp`: the kernels' functions, compiled for the host.

use crate::support::harness::skip;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The compiled program.
pub struct HostProbe {
    folder: tempfile::TempDir,
}

impl HostProbe {
    /// Compiles the probe. Skips the test if there is no compiler or no source.
    pub fn compile() -> HostProbe {
        let folder = tempfile::tempdir().unwrap();
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/host_probe.cpp");
        if !Path::new(source).exists() {
            skip("kernels/host_probe.cpp is not here");
        }
        let mut command = Command::new(&compiler);
        match command.args(["-std=c++17", "-O1", source, "-o"]).arg(folder.path().join("probe")).status() {
            Ok(status) => assert!(status.success(), "the kernels do not compile for the host"),
            Err(error) => skip(&format!("no C++ compiler: {compiler}: {error}")),
        }
        HostProbe { folder }
    }

    /// A folder for files that the probe reads.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the probe on these lines and returns its output.
    pub fn run(&self, arguments: &[&Path], lines: String) -> String {
        let mut command = Command::new(self.folder.path().join("probe"));
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    }
}
