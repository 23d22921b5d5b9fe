//! A stub of the NVIDIA driver (`stub_driver/`): a library that exports exactly the functions of one
//! version, and shows a GPU that finds nothing. Next to it is a stub of NVRTC.

use super::harness::skip;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/stub_driver");

/// Drivers, and the CUDA that each serves: the oldest, the newest, and two whose CUDA has functions
/// that the one before lacks.
pub const VERSIONS: [(&str, u32); 4] = [("525", 12000), ("535", 12020), ("550", 12040), ("580", 13000)];

/// A folder with the libraries of a driver.
pub struct StubDriver {
    folder: tempfile::TempDir,
    cuda: u32,
}

impl StubDriver {
    /// The driver that serves this CUDA, such as 12020.
    pub fn of(cuda: u32) -> StubDriver {
        let text = fs::read_to_string(format!("{FOLDER}/symbols.txt"));
        let Ok(text) = text else { skip("the stub driver's sources are not here") };
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let names = lines.filter_map(|line| {
            let (name, since) = line.split_once(' ').unwrap_or((line, "0.0"));
            let (major, minor) = since.split_once('.').unwrap();
            let since = major.parse::<u32>().unwrap() * 1000 + minor.parse::<u32>().unwrap() * 10;
            (since <= cuda).then_some(name)
        });
        StubDriver::with(cuda, &names.collect())
    }

    /// A driver with these functions only.
    pub fn with(cuda: u32, names: &BTreeSet<&str>) -> StubDriver {
        let folder = tempfile::tempdir().unwrap();
        let own = fs::read_to_string(format!("{FOLDER}/driver.c")).unwrap();
        let others = names.iter().filter(|name| !own.contains(&format!("int {name}(")));
        let others: String = others.map(|name| format!("int {name}(void) {{ return 0; }}\n")).collect();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("others.c"), others).unwrap();
        let exported: String = names.iter().map(|name| format!("{name}; ")).collect();
        fs::write(at("exported"), format!("{{ global: {exported} local: *; }};")).unwrap();
        let script = format!("-Wl,--version-script={}", at("exported").display());
        let sources = [Path::new(FOLDER).join("driver.c"), at("others.c")];
        compile(&at("libcuda.so.1"), &sources, &[&script]);
        // The same for all drivers: the compiler, and a management library without a function.
        static COMMON: OnceLock<Vec<(&str, Vec<u8>)>> = OnceLock::new();
        let common = COMMON.get_or_init(|| {
            fs::write(at("nothing.c"), "").unwrap();
            let sources =
                [("libnvrtc.so.12", Path::new(FOLDER).join("nvrtc.c")), ("libnvidia-ml.so.1", at("nothing.c"))];
            let library = |(name, source)| {
                compile(&at(name), &[source], &[]);
                (name, fs::read(at(name)).unwrap())
            };
            sources.map(library).into()
        });
        common.iter().for_each(|(name, library)| fs::write(at(name), library).unwrap());
        StubDriver { folder, cuda }
    }

    /// The folder with the libraries, which a test may use.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes a program load these libraries.
    pub fn apply<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("LD_LIBRARY_PATH", self.folder.path()).env("STUB_CUDA", self.cuda.to_string());
        command.env("STUB_COMPILED", self.folder.path().join("compiled"))
    }

    /// The architectures for which the stub of NVRTC was asked to compile.
    pub fn compiled(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join("compiled")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn compile(library: &Path, sources: &[impl AsRef<std::ffi::OsStr>], more: &[&str]) {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut command = Command::new(&compiler);
    let output = command.args(["-shared", "-fPIC", "-w", "-o"]).arg(library).args(sources).args(more).output();
    match output {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => skip(&format!("no C compiler: {compiler}: {error}")),
    }
}
