//! The processes of GPUs: a fault of a GPU ends one of them, and its thread starts another. Such a
//! process has no secret and, once its GPU is open, makes no file, no connection and starts no program.

use crate::config::Walls;
use crate::device_cache;
use crate::frame;
use crate::os::process;
use crate::os::walls::{NoWalls, check};
use crate::scheduler::DeviceOpener;
use crate::search::orders::{DeviceProcess, ProcessPipe, serve_device};
use crate::search::{self, DeviceId, SearchError};
use crate::vault::os::{channel, leave_terminal, program, walls};
use crate::vault::{MAX_FRAME, MissingWall, ProcessRequest, Spawned, Spawner, log_lines};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Opens each GPU in a process of its own, and processors in this process. A process that lacks its
/// sandbox is not used if `walls` are required.
pub fn opener(spawner: Arc<dyn Spawner>, walls: Walls) -> DeviceOpener {
    opener_of(spawner, walls, |device| Some(device).filter(|device| matches!(device, DeviceId::Cuda(_))))
}

/// Opens devices in processes of their own, each as the device that `opens` names; `None` for one in
/// this process.
#[doc(hidden)]
pub fn opener_of(
    spawner: Arc<dyn Spawner>,
    walls: Walls,
    opens: impl Fn(DeviceId) -> Option<DeviceId> + Send + Sync + 'static,
) -> DeviceOpener {
    let counts = Arc::clone(&spawner);
    let count = move || DeviceProcess::count_gpus(start(&*counts).map_err(|error| error.to_string())?);
    DeviceOpener::new(count, move |id, options| match opens(id) {
        None => search::open(id, options),
        Some(device) => {
            let failed = |error: io::Error| SearchError::DeviceFailed { device: id, reason: error.to_string() };
            let pipe = start(&*spawner).map_err(failed)?;
            let process = DeviceProcess::open(pipe, id, device, options)?;
            let missing = process.missing_walls().iter().map(MissingWall::sandbox).collect();
            let refused =
                |error: NoWalls| SearchError::NoSuchDevice { asked: id.to_string(), reason: error.to_string() };
            check(&id.to_string(), missing, walls == Walls::Required).map_err(refused)?;
            Ok(Box::new(process))
        }
    })
}

fn start(spawner: &dyn Spawner) -> io::Result<ProcessPipe> {
    let Spawned { ends, mut process } = spawner.start(&ProcessRequest::Device)?;
    // Its log.
    log_lines(ends.errors, |line| match line.strip_prefix("INFO ") {
        Some(line) => tracing::info!(line, "a device process says"),
        None => tracing::warn!(line, "a device process says"),
    })?;
    let end = Box::new(move || process.end().status);
    Ok(ProcessPipe { reader: Box::new(ends.reader), writer: Box::new(ends.writer), end })
}

/// Serves the bot that started this process: opens the device that it asks for, and searches on it
/// until the bot closes the channel.
///
/// Errors: standard input is not a channel, or brings something other than orders.
pub fn serve() -> io::Result<()> {
    program::close_inherited_files();
    let (mut reader, writer) = channel::own_end()?;
    let kernels: Option<PathBuf> = frame::read(&mut reader, MAX_FRAME)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    leave_terminal();
    let log = tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(false).without_time().with_target(false);
    log.with_max_level(tracing::Level::INFO).init();
    let enclose = || walls::enclose_device().into_iter().map(|wall| wall.loss).collect();
    serve_device(reader, writer, kernels.and_then(|folder| device_cache::kernels_in(&folder)), enclose, || {
        process::end_now(1)
    })
}
