//! Standard error for the log. Lines wait in a bounded queue for a thread that writes them. So a
//! terminal that is gone, a pipe whose reader sleeps or a full disk neither ends nor delays the
//! work: lines are lost, and counted.

use std::io::{self, ErrorKind, Write};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tracing_subscriber::fmt::MakeWriter;

/// The most bytes that wait to be written.
const MAX_QUEUED_BYTES: usize = 256 << 10;
/// Pause before another attempt at a standard error that does not block and is full.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// The queue of this process. There is one standard error. A process that logs nothing, such as the
/// vault, has no thread for it.
static STANDARD_ERROR: OnceLock<LineQueue> = OnceLock::new();

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
    if let Some(queue) = STANDARD_ERROR.get() {
        queue.flush(limit);
    }
}

/// Number of lines since the start that could not be written.
pub fn lost_lines() -> u64 {
    STANDARD_ERROR.get().map_or(0, |queue| queue.totals.lost.load(Ordering::Relaxed))
}

fn push(line: Vec<u8>) {
    STANDARD_ERROR.get_or_init(|| LineQueue::new(io::stderr())).push(line);
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

/// The queue of a thread that writes lines.
struct LineQueue {
    items: Sender<Item>,
    totals: Arc<Totals>,
}

/// An item for the thread that writes.
enum Item {
    Line(Vec<u8>),
    /// Answered once all items before it are done.
    Flush(Sender<()>),
}

#[derive(Default)]
struct Totals {
    waiting_bytes: AtomicUsize,
    lost: AtomicU64,
}

impl LineQueue {
    /// Starts the thread. Without it every line is lost.
    fn new(output: impl Write + Send + 'static) -> LineQueue {
        let (items, received) = mpsc::channel();
        let totals = Arc::<Totals>::default();
        let of_thread = Arc::clone(&totals);
        let thread = std::thread::Builder::new().name("log".to_owned());
        let _ = thread.spawn(move || write_lines(received, output, &of_thread));
        LineQueue { items, totals }
    }

    fn push(&self, line: Vec<u8>) {
        let Totals { waiting_bytes, lost } = &*self.totals;
        let length = line.len();
        let has_room = waiting_bytes.fetch_add(length, Ordering::Relaxed) + length <= MAX_QUEUED_BYTES;
        if !has_room || self.items.send(Item::Line(line)).is_err() {
            waiting_bytes.fetch_sub(length, Ordering::Relaxed);
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&self, limit: Duration) {
        let (done, is_done) = mpsc::channel();
        if self.items.send(Item::Flush(done)).is_ok() {
            let _ = is_done.recv_timeout(limit);
        }
    }
}

/// Writes lines as they come; before one, how many lines were lost since that was last told.
fn write_lines(items: Receiver<Item>, mut output: impl Write, totals: &Totals) {
    let mut told = 0;
    for item in items {
        let text = match item {
            Item::Line(text) => text,
            Item::Flush(done) => {
                let _ = done.send(());
                continue;
            }
        };
        totals.waiting_bytes.fetch_sub(text.len(), Ordering::Relaxed);
        let lost = totals.lost.load(Ordering::Relaxed);
        let notice = match lost - told {
            0 => Vec::new(),
            // The last lost line may have been written in part.
            new => [&b"\n"[..], &line("WARN", &format!("{new} lines of the log were lost: they could not be written"))]
                .concat(),
        };
        if write_all(&mut output, &notice).is_ok() {
            told = lost;
            if write_all(&mut output, &text).is_ok() {
                continue;
            }
        }
        totals.lost.fetch_add(1, Ordering::Relaxed);
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

    /// A disk that is full for the first lines, and waits before each.
    struct Disk {
        refused: usize,
        written: Arc<Mutex<Vec<u8>>>,
        go_on: Receiver<()>,
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
    fn lines_wait_in_a_bounded_queue_and_those_lost_are_counted_in_the_log_once_there_is_room() {
        let (go, go_on) = mpsc::channel();
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let queue = LineQueue::new(Disk { refused: 4, written: Arc::clone(&written), go_on });
        for number in 0..6 {
            queue.push(format!("{number}\n").into_bytes());
        }
        // The disk still waits, so the queue is full now, and this line is lost at once.
        queue.push(vec![b'x'; MAX_QUEUED_BYTES]);
        assert_eq!(queue.totals.lost.load(Ordering::Relaxed), 1);
        drop(go);
        queue.flush(Duration::from_secs(60));
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        assert!(text.starts_with("\n") && text.contains("WARN 5 lines of the log were lost"), "{text}");
        assert!(text.ends_with("\n4\n5\n"), "{text}");
        assert_eq!(queue.totals.lost.load(Ordering::Relaxed), 5);
        assert_eq!(queue.totals.waiting_bytes.load(Ordering::Relaxed), 0);
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
