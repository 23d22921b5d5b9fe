//! Services of Linux that other systems lack or do not need.

#[cfg(any(test, feature = "test-util"))]
#[path = "../../../tests/attack.rs"]
mod attack;
pub mod tree;

use std::os::fd::{AsFd, OwnedFd};
use tokio::net::TcpStream;

/// A second handle to a TCP connection.
pub struct Tcp(OwnedFd);

impl Tcp {
    /// A handle to this connection; `None` if the system gives none.
    pub fn of(stream: &TcpStream) -> Option<Tcp> {
        stream.as_fd().try_clone_to_owned().ok().map(Tcp)
    }

    /// Makes Linux acknowledge received data now. Otherwise it may wait 40 ms, to send the
    /// acknowledgement along with data. It goes back to waiting after each acknowledgement, so this
    /// must be called each time.
    pub fn acknowledge_at_once(&self) {
        // Without it the connection still works, only slower.
        let _ = rustix::net::sockopt::set_tcp_quickack(&self.0, true);
    }
}

/// Makes glibc's malloc return memory early: one arena per two cores, and `mmap` for blocks of 128
/// KiB and more. Must be called first in `main`. Has no effect with other C libraries.
///
/// By default glibc creates up to eight arenas per core, and memory freed in one is not reused by
/// the others. Also, freeing large blocks raises its `mmap` threshold up to 32 MiB, and it keeps
/// twice that much. One arena for 16 cores is too few: a flood of messages then took 15 s instead
/// of 2 s.
pub fn tune_malloc() {
    #[cfg(target_env = "gnu")]
    {
        use std::ffi::c_int;
        // From glibc's malloc.h.
        const M_ARENA_MAX: c_int = -8;
        const M_MMAP_THRESHOLD: c_int = -3;
        unsafe extern "C" {
            fn mallopt(parameter: c_int, value: c_int) -> c_int;
        }
        // SAFETY: the signature is glibc's. It sets a parameter; unknown parameters are ignored.
        unsafe {
            let arenas = std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
            mallopt(M_ARENA_MAX, c_int::try_from(arenas).unwrap_or(c_int::MAX));
            mallopt(M_MMAP_THRESHOLD, 128 << 10);
        }
    }
}
