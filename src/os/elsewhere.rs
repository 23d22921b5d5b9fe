//! Stand-ins for services of Linux, on systems that lack or do not need them.

/// Stand-ins for `os::linux::kernel`.
pub mod kernel {
    use std::io;
    use std::path::PathBuf;
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

    /// `false`: this is not Linux.
    pub fn is_wsl() -> bool {
        false
    }
}
