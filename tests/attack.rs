//! What an attacker would try in the network process. A test runs it there and reads what came of
//! each attempt. Not in released programs.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::null;

/// Runs the attack if `NPUBBOT_TEST_ATTACK` names the file that opens the identity. Writes each
/// attempt and its error number, 0 for success, to `attack` in the ledger's folder of `data`.
pub fn attack_if_asked(data: &Path, vault: Option<u32>) {
    let Some(unlocks) = std::env::var_os("NPUBBOT_TEST_ATTACK").map(PathBuf::from) else { return };
    let ledger = data.join("ledger");
    let mut report = Report(String::new());
    report.files(data, &unlocks);
    // SAFETY: it takes no argument.
    let supervisor = unsafe { libc::getppid() };
    report.process("supervisor", supervisor);
    if let Some(vault) = vault {
        report.process("vault", vault as libc::pid_t);
    }
    report.sockets(data);
    report.calls(&data.join("identity.age"));
    // The whole report appears at once.
    let written = fs::write(ledger.join("attack.new"), report.0);
    let _ = written.and_then(|()| fs::rename(ledger.join("attack.new"), ledger.join("attack")));
}

struct Report(String);

impl Report {
    fn add<T>(&mut self, name: &str, outcome: io::Result<T>) {
        let number = outcome.map_or_else(|error| error.raw_os_error().unwrap_or(-1), |_| 0);
        self.0.push_str(&format!("{name} {number}\n"));
    }

    /// Makes a system call. Its arguments are numbers, or pointers that live until it returns.
    fn call(&mut self, name: &str, number: libc::c_long, arguments: [libc::c_long; 5]) {
        let [a, b, c, d, e] = arguments;
        // SAFETY: the arguments are those of the call, or ones that it refuses.
        let result = unsafe { libc::syscall(number, a, b, c, d, e) };
        self.add(name, if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) });
    }

    fn files(&mut self, data: &Path, unlocks: &Path) {
        let identity = data.join("identity.age");
        self.add("open:identity", File::open(&identity));
        self.add("open:passphrase", File::open(unlocks));
        self.add(
            "open:through-root",
            File::open(Path::new("/proc/self/root").join(identity.strip_prefix("/").unwrap_or(&identity))),
        );
        self.add("list:data", fs::read_dir(data));
        self.add("make:data", File::create(data.join("made-by-attack")));
        self.add("link:identity", fs::hard_link(&identity, data.join("ledger/linked")));
        self.add("symlink:identity", std::os::unix::fs::symlink(&identity, data.join("ledger/symlink")));
        self.add("open:device", File::open("/dev/zero"));
        let drivers = fs::read_dir("/dev").into_iter().flatten().flatten();
        let is_driver = |path: &PathBuf| path.to_string_lossy().starts_with("/dev/nvidia");
        for driver in drivers.map(|entry| entry.path()).filter(is_driver).chain(["/dev/nvidiactl".into()]) {
            if driver.exists() {
                self.add("open:driver", File::open(driver));
            }
        }
    }

    fn process(&mut self, name: &str, id: libc::pid_t) {
        let of = |file: &str| format!("/proc/{id}/{file}");
        self.add(&format!("{name}:mem"), File::open(of("mem")));
        self.add(&format!("{name}:environ"), File::open(of("environ")));
        self.add(&format!("{name}:fd"), fs::read_dir(of("fd")));
        let id = libc::c_long::from(id);
        self.call(&format!("{name}:ptrace"), libc::SYS_ptrace, [libc::PTRACE_DETACH.into(), id, 0, 0, 0]);
        self.call(&format!("{name}:process_vm_readv"), libc::SYS_process_vm_readv, [id, 0, 0, 0, 0]);
        self.call(&format!("{name}:process_vm_writev"), libc::SYS_process_vm_writev, [id, 0, 0, 0, 0]);
        self.call(&format!("{name}:kill"), libc::SYS_kill, [id, 0, 0, 0, 0]);
        self.call(&format!("{name}:pidfd_open"), libc::SYS_pidfd_open, [id, 0, 0, 0, 0]);
    }

    fn sockets(&mut self, data: &Path) {
        self.add("connect:control", UnixStream::connect(data.join("control.sock")));
        self.add("listen:port", TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        self.call("socket:packet", libc::SYS_socket, [libc::AF_PACKET.into(), libc::SOCK_RAW.into(), 0, 0, 0]);
    }

    fn calls(&mut self, identity: &Path) {
        self.add("run:program", Command::new("/bin/true").status());
        let program = c"/bin/true".as_ptr() as libc::c_long;
        // A list of arguments that cannot be read: without walls the error is another one.
        self.call("execve", libc::SYS_execve, [program, 1, 0, 0, 0]);
        self.call("execveat", libc::SYS_execveat, [libc::AT_FDCWD.into(), program, 1, 0, 0]);
        let path = CString::new(identity.as_os_str().as_bytes()).unwrap_or_default();
        let path = path.as_ptr() as libc::c_long;
        self.call("chmod", libc::SYS_fchmodat, [libc::AT_FDCWD.into(), path, 0o600, 0, 0]);
        let nothing = null::<u8>() as libc::c_long;
        for (name, number) in [
            ("io_uring_setup", libc::SYS_io_uring_setup),
            ("mount", libc::SYS_mount),
            ("open_tree", libc::SYS_open_tree),
            ("setns", libc::SYS_setns),
            ("keyctl", libc::SYS_keyctl),
            ("add_key", libc::SYS_add_key),
            ("request_key", libc::SYS_request_key),
            ("bpf", libc::SYS_bpf),
            ("perf_event_open", libc::SYS_perf_event_open),
            ("open_by_handle_at", libc::SYS_open_by_handle_at),
            ("init_module", libc::SYS_init_module),
            ("kexec_load", libc::SYS_kexec_load),
        ] {
            self.call(name, number, [nothing; 5]);
        }
        // A flag that does not exist: without walls it would be refused for that.
        self.call("userfaultfd", libc::SYS_userfaultfd, [1 << 20, 0, 0, 0, 0]);
        self.call("unshare", libc::SYS_unshare, [1 << 3, 0, 0, 0, 0]);
    }
}
