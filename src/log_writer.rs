//! Standard error for the log. Lines wait in a bounded queue for a thread that writes them. So a
//! terminal that is gone, a pipe whose reader sleeps or a full disk neither ends nor delays the
//! work: lines are lost, and counted.

use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tracing_subscriber::fmt::MakeWriter;

/// The most bytes that wait to be written.
const MAX_QUEUED_BYTES: usize = 256 << 10;
/// Pause before another attempt at a standard error that does not block and is full.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// The queue of this process. There is one standard error. A process that logs nothing, such as the
/// vault, has no thread for it.
static STANDARD_ERROR: OnceLock<LineQueue> = OnceLock::new();

/// Hands lines of the log to the thread that writes them. Never fails and never waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogWriter;

impl Write for LogWriter {
    /// Takes one or more whole lines.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        push(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for LogWriter {
    type Writer = LogWriter;

    fn make_writer(&self) -> LogWriter {
        LogWriter
    }
}

/// Sends the texts of panics to the log, where they can block nobody.
pub fn take_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let (thread, what) = (std::thread::current(), panic.to_string().replace('\n', " "));
        tracing::error!("thread {} {what}", thread.name().unwrap_or("without a name"));
    }));
}

/// Waits until every line so far is written, or failed to be, for at most `limit`.
pub fn flush(limit: Duration) {
    if let Some(queue) = STANDARD_ERROR.get() {
        queue.flush(limit);
    }
}

/// Number of lines since the start that could not be written.
pub fn lost_lines() -> u64 {
    STANDARD_ERROR.get().map_or(0, |queue| queue.lines().lost)
}

fn push(lines: &[u8]) {
    let tell = |lost| tracing::warn!("{lost} lines of the log were lost: they could not be written");
    STANDARD_ERROR.get_or_init(|| LineQueue::new(io::stderr(), tell)).push(lines);
}

/// The lines that wait for the thread that writes them. Clones share them.
#[derive(Clone, Default)]
struct LineQueue(Arc<(Mutex<QueuedLines>, Condvar)>);

#[derive(Default)]
struct QueuedLines {
    text: Vec<u8>,
    is_writing: bool,
    /// Lines that could not be written.
    lost: u64,
}

impl LineQueue {
    /// Starts the thread, which tells how many lines were lost once there is room again. Without it
    /// the queue fills up, and every line is lost.
    fn new(output: impl Write + Send + 'static, tell: impl Fn(u64) + Send + 'static) -> LineQueue {
        let queue = LineQueue::default();
        let of_thread = queue.clone();
        let thread = std::thread::Builder::new().name("log".to_owned());
        let _ = thread.spawn(move || of_thread.write_lines(output, tell));
        queue
    }

    fn lines(&self) -> MutexGuard<'_, QueuedLines> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, lines: &[u8]) {
        let mut queued = self.lines();
        if queued.text.len() + lines.len() > MAX_QUEUED_BYTES {
            queued.lost += 1;
        } else {
            queued.text.extend(lines);
            self.0.1.notify_all();
        }
    }

    fn flush(&self, limit: Duration) {
        let is_busy = |queued: &mut QueuedLines| queued.is_writing || !queued.text.is_empty();
        drop(self.0.1.wait_timeout_while(self.lines(), limit, is_busy));
    }

    fn write_lines(&self, mut output: impl Write, tell: impl Fn(u64)) {
        let (mut told, mut is_cut) = (0, false);
        loop {
            let idle = |queued: &mut QueuedLines| queued.text.is_empty();
            let mut queued = self.0.1.wait_while(self.lines(), idle).unwrap_or_else(PoisonError::into_inner);
            let text = std::mem::take(&mut queued.text);
            queued.is_writing = true;
            drop(queued);
            for line in text.split_inclusive(|&byte| byte == b'\n') {
                // The last lost line may have been written in part.
                let end: &[u8] = if is_cut { b"\n" } else { b"" };
                is_cut = write_all(&mut output, end).and_then(|()| write_all(&mut output, line)).is_err();
                self.lines().lost += u64::from(is_cut);
            }
            let lost = self.lines().lost;
            if lost > told && !is_cut {
                tell(lost - told);
                told = lost;
            }
            self.lines().is_writing = false;
            self.0.1.notify_all();
        }
    }
}

/// Writes all bytes, also to a file that does not block.
fn write_all(output: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match output.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(RETRY_PAUSE),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Limits log lines of one cause to one per minute or hour.
#[derive(Debug)]
pub(crate) struct LogLimit {
    /// The shortest time between two lines.
    pause: Duration,
    last: Mutex<Option<LastLogLine>>,
}

/// The last log line of a cause.
#[derive(Debug)]
struct LastLogLine {
    at: Instant,
    skipped: u64,
}

impl LogLimit {
    /// A limit of one line per minute, of which none was written yet.
    pub const fn new() -> LogLimit {
        LogLimit { pause: Duration::from_secs(60), last: Mutex::new(None) }
    }

    /// A limit of one line per hour, for a trouble that may last for days, such as a full disk.
    pub const fn hourly() -> LogLimit {
        LogLimit { pause: Duration::from_secs(3600), last: Mutex::new(None) }
    }

    /// Whether to write a line now. If so, returns the number of lines skipped since the last one.
    pub fn next(&self, now: Instant) -> Option<u64> {
        let mut recent = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *recent {
            Some(last) if now.saturating_duration_since(last.at) < self.pause => {
                last.skipped += 1;
                None
            }
            last => {
                let skipped = last.as_ref().map_or(0, |last| last.skipped);
                *last = Some(LastLogLine { at: now, skipped: 0 });
                Some(skipped)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A disk that is full for the first lines, and waits before each.
    struct Disk {
        refused: usize,
        written: Arc<Mutex<Vec<u8>>>,
        go_on: mpsc::Receiver<()>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.go_on.recv();
            if self.refused > 0 {
                self.refused -= 1;
                return Err(ErrorKind::StorageFull.into());
            }
            self.written.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_wait_in_a_bounded_queue_and_those_lost_are_told_once_there_is_room() {
        let (go, go_on) = mpsc::channel();
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let (tell, told) = mpsc::channel();
        let disk = Disk { refused: 4, written: Arc::clone(&written), go_on };
        let queue = LineQueue::new(disk, move |lost| tell.send(lost).unwrap());
        for number in 0..6 {
            queue.push(format!("{number}\n").as_bytes());
        }
        // The disk still waits, and this line is lost at once.
        queue.push(&[b'x'; MAX_QUEUED_BYTES + 1]);
        assert_eq!(queue.lines().lost, 1);
        drop(go);
        queue.flush(Duration::from_secs(60));
        assert_eq!(String::from_utf8_lossy(&written.lock().unwrap()), "\n4\n5\n");
        assert_eq!(told.try_iter().sum::<u64>(), 5);
        assert_eq!(queue.lines().lost, 5);
    }

    #[test]
    fn a_cause_has_one_line_a_minute_with_the_number_skipped() {
        static HOURLY: LogLimit = LogLimit::hourly();
        let (limit, start) = (LogLimit::new(), Instant::now());
        let next = |seconds| limit.next(start + Duration::from_secs(seconds));
        assert_eq!((next(0), next(1), next(59)), (Some(0), None, None));
        assert_eq!((next(60), next(61), next(200)), (Some(2), None, Some(1)));
        let hourly = [0, 3599, 3600].map(|seconds| LogLimit::next(&HOURLY, start + Duration::from_secs(seconds)));
        assert_eq!(hourly, [Some(0), None, Some(1)]);
    }
}
