//! Stand-ins for services of Linux, on systems that lack or do not need them.

/// The running program.
pub mod program {
    use std::io;
    use std::path::PathBuf;

    /// The path by which this program can be started again.
    ///
    /// Errors: the system does not say.
    pub fn this_program() -> io::Result<PathBuf> {
        std::env::current_exe()
    }

    /// Does nothing: the process has its program's name.
    pub fn name_vault() {}

    /// Does nothing.
    pub fn close_inherited_files() {}
}

/// Stand-ins for the walls around the vault process: there are none here.
#[cfg(unix)]
pub mod walls {
    use crate::os::MissingWall;

    /// The missing walls.
    pub type Missing = Vec<MissingWall>;

    /// Does nothing. Returns that this system has no walls.
    pub fn hide() -> Missing {
        vec![MissingWall::sandbox("this system has no wall around the vault; Linux has")]
    }

    /// Does nothing.
    pub fn enclose() -> Missing {
        Missing::new()
    }

    /// Does nothing.
    pub fn forbid_system_calls() -> Missing {
        Missing::new()
    }

    /// Does nothing. Returns that this system has no walls.
    pub fn enclose_device() -> Missing {
        vec![MissingWall::sandbox("this system has no wall around the processes of GPUs; Linux has")]
    }
}
