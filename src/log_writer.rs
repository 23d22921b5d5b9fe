//! Standard error for the log. Lines wait in a bounded queue for a thread that writes them. So a
//! terminal that is gone, a pipe whose reader sleeps or a full disk neither ends nor delays the
//! work: lines are lost, and counted.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tracing_subscriber::fmt::MakeWriter;

/// The most bytes that wait to be written.
const MAX_QUEUED_BYTES: usize = 256 << 10;
/// Pause before another attempt at a standard error that does not block and is full.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// The queue of this process. There is one standard error.
static STANDARD_ERROR: LineQueue = LineQueue::new();

/// Whether lines are JSON objects, and whether whoever reads them dates them, for the lines that
/// are made here.
static IS_JSON: AtomicBool = AtomicBool::new(false);
static IS_DATED: AtomicBool = AtomicBool::new(false);

/// Hands lines of the log to the thread that writes them. Never fails and never waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogWriter;

impl Write for LogWriter {
    /// Takes one or more whole lines.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        push(lines.to_vec());
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

/// Sets the form of the lines about panics and lost lines.
pub fn set_form(is_json: bool, is_dated: bool) {
    IS_JSON.store(is_json, Ordering::Relaxed);
    IS_DATED.store(is_dated, Ordering::Relaxed);
}

/// Sends the texts of panics to the log, where they can block nobody.
pub fn take_panics() {
    std::panic::set_hook(Box::new(|panic| push(line("ERROR", &describe(panic)))));
}

/// Waits until every line so far is written, or failed to be, for at most `limit`.
pub fn flush(limit: Duration) {
    STANDARD_ERROR.flush(limit);
}

/// Number of lines since the start that could not be written.
pub fn lost_lines() -> u64 {
    STANDARD_ERROR.lock().lost
}

fn push(line: Vec<u8>) {
    STANDARD_ERROR.push(line);
    STANDARD_ERROR.start();
}

fn describe(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let message = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or_default();
    let place = panic.location().map_or_else(String::new, |place| format!(" at {}:{}", place.file(), place.line()));
    format!("thread {} panicked{place}: {message}", std::thread::current().name().unwrap_or("without a name"))
}

/// A line that does not come from `tracing`.
fn line(level: &str, message: &str) -> Vec<u8> {
    let time = humantime::format_rfc3339_micros(SystemTime::now());
    let line = match IS_JSON.load(Ordering::Relaxed) {
        true => {
            let time = time.to_string();
            serde_json::json!({ "timestamp": time, "level": level, "fields": { "message": message } }).to_string()
        }
        false if IS_DATED.load(Ordering::Relaxed) => format!("{level:>5} {}", message.replace('\n', " ")),
        false => format!("{time} {level:>5} {}", message.replace('\n', " ")),
    };
    (line + "\n").into_bytes()
}

/// Lines that wait to be written.
struct LineQueue {
    state: Mutex<QueueState>,
    /// Notified when a line comes, and when none is left.
    changed: Condvar,
}

struct QueueState {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Whether there is a thread that writes.
    has_thread: bool,
    is_writing: bool,
    lost: u64,
    /// The lost lines that a line of the log has told of.
    told: u64,
}

impl LineQueue {
    const fn new() -> LineQueue {
        let state =
            QueueState { lines: VecDeque::new(), bytes: 0, has_thread: false, is_writing: false, lost: 0, told: 0 };
        LineQueue { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn push(&self, line: Vec<u8>) {
        let mut state = self.lock();
        if state.bytes + line.len() > MAX_QUEUED_BYTES {
            state.lost += 1;
            return;
        }
        state.bytes += line.len();
        state.lines.push_back(line);
        drop(state);
        self.changed.notify_all();
    }

    /// Starts the thread that writes, if there is none.
    fn start(&'static self) {
        let mut state = self.lock();
        if !state.has_thread {
            // If it cannot be started, the next line tries again.
            let thread = std::thread::Builder::new().name("log".to_owned());
            state.has_thread = thread.spawn(|| self.write_to(&mut io::stderr(), || false)).is_ok();
        }
    }

    fn flush(&self, limit: Duration) {
        let until = Instant::now() + limit;
        let mut state = self.lock();
        while state.has_thread && (state.is_writing || !state.lines.is_empty()) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Writes lines as they come, until `is_over` at an empty queue.
    fn write_to(&self, output: &mut impl Write, is_over: impl Fn() -> bool) {
        let _leave = Leave(self);
        loop {
            let lines = {
                let mut state = self.lock();
                state.is_writing = false;
                self.changed.notify_all();
                while state.lines.is_empty() {
                    if is_over() {
                        return;
                    }
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                state.is_writing = true;
                state.bytes = 0;
                std::mem::take(&mut state.lines)
            };
            for line in lines {
                self.write_one(output, &line);
            }
        }
    }

    /// Writes a line; before it, how many lines were lost since it was last told.
    fn write_one(&self, output: &mut impl Write, text: &[u8]) {
        let (lost, told) = {
            let state = self.lock();
            (state.lost, state.told)
        };
        if lost > told {
            let notice =
                line("WARN", &format!("{} lines of the log were lost: they could not be written", lost - told));
            // The last lost line may have been written in part.
            if write_all(output, &[b"\n", notice.as_slice()].concat()).is_err() {
                self.lock().lost += 1;
                return;
            }
            self.lock().told = lost;
        }
        if write_all(output, text).is_err() {
            self.lock().lost += 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks at the end of the thread that there is none: the next line starts another.
struct Leave<'a>(&'a LineQueue);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        (state.has_thread, state.is_writing) = (false, false);
        self.0.changed.notify_all();
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

/// The shortest time between two log lines of one cause.
const LOG_PAUSE: Duration = Duration::from_secs(60);

/// Limits log lines of one cause to one per minute.
#[derive(Debug)]
pub(crate) struct LogLimit(Mutex<Option<LastLogLine>>);

/// The last log line of a cause.
#[derive(Debug)]
struct LastLogLine {
    at: Instant,
    skipped: u64,
}

impl LogLimit {
    /// A limit under which no line was written yet.
    pub const fn new() -> LogLimit {
        LogLimit(Mutex::new(None))
    }

    /// Whether to write a line now. If so, returns the number of lines skipped since the last one.
    pub fn next(&self, now: Instant) -> Option<u64> {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *recent {
            Some(last) if now.saturating_duration_since(last.at) < LOG_PAUSE => {
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

    /// A file on a disk that is full at first.
    #[derive(Default)]
    struct Disk {
        refused: usize,
        written: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.refused > 0 {
                self.refused -= 1;
                return Err(ErrorKind::StorageFull.into());
            }
            self.written.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_lost_on_a_full_disk_are_counted_in_the_log_once_there_is_room() {
        let (queue, mut disk) = (LineQueue::new(), Disk { refused: 4, ..Disk::default() });
        for number in 0..6 {
            queue.push(format!("{number}\n").into_bytes());
        }
        queue.write_to(&mut disk, || true);
        let text = String::from_utf8(disk.written).unwrap();
        assert!(text.contains("WARN 4 lines of the log were lost"), "{text}");
        assert!(text.ends_with("\n4\n5\n"), "{text}");
        assert_eq!(queue.lock().lost, 4);
    }

    #[test]
    fn a_line_for_a_reader_that_sleeps_waits_in_a_bounded_queue_and_delays_nobody() {
        let queue = LineQueue::new();
        let (line, lines) = (vec![b'x'; 1024], 3 * MAX_QUEUED_BYTES as u64 / 1024);
        for _ in 0..lines {
            queue.push(line.clone());
        }
        let state = queue.lock();
        assert_eq!((state.bytes, state.lost), (MAX_QUEUED_BYTES, lines - MAX_QUEUED_BYTES as u64 / 1024));
    }

    #[test]
    fn a_thread_that_is_gone_is_known_to_be_gone() {
        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                panic!("a panic of the test")
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let queue = LineQueue::new();
        queue.lock().has_thread = true;
        queue.push(b"x\n".to_vec());
        let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| queue.write_to(&mut Broken, || true)));
        assert!(died.is_err() && !queue.lock().has_thread);
        queue.flush(Duration::from_secs(60));
    }

    #[test]
    fn a_cause_has_one_line_a_minute_with_the_number_skipped() {
        let (limit, start) = (LogLimit::new(), Instant::now());
        let next = |seconds| limit.next(start + Duration::from_secs(seconds));
        assert_eq!((next(0), next(1), next(59)), (Some(0), None, None));
        assert_eq!((next(60), next(61), next(200)), (Some(2), None, Some(1)));
    }
}
