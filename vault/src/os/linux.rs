//! Linux. Other Unix systems are not supported.

use rustix::process::{Signal, set_parent_process_death_signal, setpgid};
use rustix::stdio::dup2_stdout;
use rustix::thread::set_name;
use std::ffi::OsStr;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

/// Files and folders of one user.
pub mod files {
    use std::fs::{DirBuilder, File, Metadata, OpenOptions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
    use std::path::Path;

    /// Permissions of a file that only its owner may use.
    pub const FILE: u32 = 0o600;
    /// Permissions of a folder that only its owner may use.
    pub const FOLDER: u32 = 0o700;
    /// Mask of the permissions of everybody but the owner.
    const OTHERS: u32 = 0o077;

    /// Makes a folder, and those above it, for its owner only. An existing one is left as it is.
    ///
    /// Errors: those of the file system.
    pub fn create_folder(folder: &Path) -> io::Result<()> {
        if folder.is_dir() || folder.as_os_str().is_empty() {
            return Ok(());
        }
        if let Some(above) = folder.parent() {
            create_folder(above)?;
        }
        match DirBuilder::new().mode(FOLDER).create(folder) {
            // Another process may have made it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
            Err(error) => Err(error),
            Ok(()) => {
                give_to_folders_owner(folder);
                Ok(())
            }
        }
    }

    /// Makes a file for its owner only, and opens it for writing.
    ///
    /// Errors: it exists; those of the file system.
    pub fn create_new(file: &Path) -> io::Result<File> {
        let made = OpenOptions::new().create_new(true).write(true).mode(FILE).open(file)?;
        give_to_folders_owner(file);
        Ok(made)
    }

    /// Gives what root has just made to the owner of the folder that it is in. Otherwise a
    /// service's user could not read what root makes in the service's data folder.
    pub fn give_to_folders_owner(made: &Path) {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = made.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if let Ok(meta) = std::fs::metadata(folder)
            && meta.uid() != 0
        {
            // If this fails it stays root's, and who cannot read it says so.
            let _ = std::os::unix::fs::lchown(made, Some(meta.uid()), Some(meta.gid()));
        }
    }

    /// Whether anybody but its owner has rights to a file or folder.
    ///
    /// Errors: those of the file system.
    pub fn is_open_to_others(path: &Path) -> io::Result<bool> {
        std::fs::metadata(path).map(|meta| permits_others(&meta))
    }

    /// Like [`is_open_to_others`], for an open file.
    ///
    /// Errors: those of the file system.
    pub fn is_file_open_to_others(file: &File) -> io::Result<bool> {
        file.metadata().map(|meta| permits_others(&meta))
    }

    fn permits_others(meta: &Metadata) -> bool {
        meta.permissions().mode() & OTHERS != 0
    }

    /// Makes a symbolic link to a file, for tests.
    #[cfg(any(test, feature = "test-util"))]
    pub fn make_link(to: &Path, link: &Path) -> io::Result<()> {
        std::os::unix::fs::symlink(to, link)
    }

    /// Makes sure that a new name in a folder outlives a power loss.
    ///
    /// Errors: those of the file system.
    pub fn sync_folder(folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

/// Keeps the signals of Ctrl-C and of a closed terminal from the vault, because the bot needs the
/// vault to stop cleanly. The vault stays in the bot's session: Linux shares processors among
/// sessions first (`sched_autogroup`), so in its own session it would wait behind the bot's search.
pub fn leave_terminal() {
    // It fails only for the leader of a session, which is in a group of its own already.
    let _ = setpgid(None, None);
}

/// Sets the name of a process in lists of processes.
pub fn prepare(command: &mut Command, name: &str) {
    command.arg0(name);
}

/// Standard input and output, of which the latter is standard error from then on: a library that
/// prints must not write to the bot.
pub fn own_pipes() -> io::Result<(PipeReader, PipeWriter)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    dup2_stdout(io::stderr())?;
    Ok((input.into(), output.into()))
}

/// Whether a system call filter ended a process.
pub fn is_forbidden_call(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::SYS.as_raw())
}

/// Path of the running program. It works even after the program's file was replaced.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// The path by which this program can be started again.
///
/// Errors: none on Linux.
pub fn this_program() -> io::Result<PathBuf> {
    // In a root folder without `/proc`, the path that this program was started by.
    let started_by = || PathBuf::from(OsStr::from_bytes(rustix::param::linux_execfn().to_bytes()));
    Ok(Some(PathBuf::from(THIS_PROGRAM)).filter(|link| link.exists()).unwrap_or_else(started_by))
}

/// Names the vault process in lists of processes. It is executed as `/proc/self/exe`, so it would
/// otherwise be listed as `exe`.
pub fn name_vault() {
    let _ = set_name(c"npubbot-vault");
}

/// Names the network process in lists of processes, and ends it with its parent.
///
/// Errors: the system refuses.
pub fn follow_supervisor() -> io::Result<()> {
    let _ = set_name(c"npubbot-network");
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

/// Closes all file descriptors except standard input, output and error. Those that npubbot opened
/// were closed by `exec`; those of a GPU driver or of the parent process may still be open. Only
/// for a process that has opened nothing yet.
pub fn close_inherited_files() {
    // SAFETY: this process has opened nothing yet, so nothing owns a file above standard error. An
    // old kernel without this call closes none.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32);
    }
}
