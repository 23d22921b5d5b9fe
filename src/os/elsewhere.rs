//! Stand-ins for services of Linux, on systems that lack or do not need them.

/// Stand-ins for `os::linux::kernel`.
pub mod kernel {
    use std::io;
    use std::path::{Path, PathBuf};
    use tokio::net::TcpStream;

    /// A second handle to a TCP connection, which does not exist here.
    pub struct Tcp;

    impl Tcp {
        /// Always `None`.
        pub fn of(_: &TcpStream) -> Option<Tcp> {
            None
        }

        /// Does nothing.
        pub fn acknowledge_at_once(&self) {}
    }

    /// A file in memory, which does not exist here.
    pub struct MemoryFile;

    impl MemoryFile {
        /// No file.
        ///
        /// Errors: always.
        pub fn with(_: &str) -> io::Result<MemoryFile> {
            Err(io::ErrorKind::Unsupported.into())
        }

        /// No path.
        pub fn path(&self) -> PathBuf {
            PathBuf::new()
        }
    }

    /// Does nothing: only glibc's malloc needs it.
    pub fn tune_malloc() {}

    /// The path by which this program can be started again.
    ///
    /// Errors: the system does not say.
    pub fn this_program() -> io::Result<PathBuf> {
        std::env::current_exe()
    }

    /// `false`: this is not Linux.
    pub fn is_in_windows() -> bool {
        false
    }

    /// Does nothing: the process has its program's name.
    pub fn name_vault() {}

    /// Does nothing.
    pub fn close_inherited_files() {}

    /// Writes nothing.
    ///
    /// Errors: always.
    pub fn dump_memory(_: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Stand-ins for the walls around the vault process: there are none here.
#[cfg(unix)]
pub mod walls {
    /// The missing walls, each with its consequence, for the operator.
    pub type Missing = Vec<String>;

    /// Does nothing. Returns that this system has no walls.
    pub fn hide() -> Missing {
        vec!["this system has no wall around the vault; Linux has".to_owned()]
    }

    /// Does nothing.
    pub fn enclose() -> Missing {
        Missing::new()
    }

    /// Does nothing.
    pub fn forbid_system_calls() -> Missing {
        Missing::new()
    }
}
