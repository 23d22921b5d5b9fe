//! `npubbot`: the program. All code worth testing is in the library.

use npubbot::cli::{self, Cli};
use npubbot::memory::Counted;
use npubbot::os::kernel::tune_malloc;
use std::alloc::System;
use std::process::ExitCode;
use zeroizing_alloc::ZeroAlloc;

/// Clears memory when it is freed, because libraries leave copies of keys on the heap. Also counts
/// the heap bytes in use.
#[global_allocator]
static ALLOCATOR: Counted<ZeroAlloc<System>> = Counted(ZeroAlloc(System));

fn main() -> ExitCode {
    tune_malloc();
    cli::end(Cli::from_arguments().run())
}
