//! A device in a process of its own: both ends of the pipe.
//!
//! ```text
//! bot                                  device process
//! DeviceRequest ─────────────────────▶ opens the device, gives up its rights
//!               ◀───────────────────── Counted, or Opened
//! DeviceProcess::submit ── orders ───▶ carry_out
//! reader thread ◀── answers, values of sensors, or why the device failed
//! ```
//!
//! An empty [`frame`], or the end of the stream, ends the process. The bot believes the process as
//! far as any device: its claims are bounded here, and verified like all others.

use super::messages::{Answer, LARGEST_ORDER, MAX_STARTS, Refusal, ToDevice, carry_out, text};
use super::sets::{ReceivedSets, SentSets};
use crate::frame;
use crate::search::calibration::{Calibration, Calibrations, Choice};
use crate::search::device::{DeviceId, DeviceInfo};
use crate::search::error::SearchError;
use crate::search::options::{KernelStore, SearchOptions};
use crate::search::restraints::{Caps, Restraints};
use crate::search::searcher::{Launch, LaunchReport, Searcher};
use crate::search::sensors::{SensorValues, Sensors};
use crate::search::{cuda, open};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The most hits of one launch: as many as a GPU reports, in 9 MiB.
const MAX_HITS: usize = 1 << 18;
/// Largest message of a device process, bytes: [`MAX_HITS`] hits of 35 bytes each, and some room.
const LARGEST_ANSWER: usize = MAX_HITS * 35 + (4 << 10);
/// The most launches in flight that a device may ask for.
const MAX_IN_FLIGHT: usize = 2;
/// The most messages that wait for the bot: answers, and a failure with its reason. A process that
/// sends more is not read any more. Decoded, they take 60 MB at most.
const MAX_RECEIVED: usize = MAX_IN_FLIGHT + 2;
/// The most GPUs that are used.
const MAX_GPUS: usize = 64;
/// The most orders that wait in the device process. One that has more in transit waits to send.
const MAX_WAITING: usize = 64;
/// The most missing walls that a device process names.
const MAX_MISSING_WALLS: usize = 8;
/// Longest reason of a failure, characters.
const LONGEST_REASON: usize = 1000;
/// Time limit for opening a device. It may have to compile its kernels first.
const OPEN_TIMEOUT: Duration = Duration::from_secs(600);
/// Time limit for the answer to an order, which takes a tenth of a second.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Time that a device process has for its end, before it is killed.
const END_TIMEOUT: Duration = Duration::from_millis(500);
/// Time between two readings of the sensors.
const SENSORS_EVERY: Duration = Duration::from_millis(500);

/// The first message to a device process.
#[derive(Serialize, Deserialize)]
enum DeviceRequest {
    /// Count the GPUs, and end.
    Count,
    /// Open a device.
    Open {
        device: DeviceId,
        options: Box<SearchOptions>,
        /// The power that the device may take.
        watts: Option<f64>,
        calibrations: BTreeMap<String, Calibration>,
    },
}

/// A message of a device process.
#[derive(Serialize, Deserialize)]
enum FromProcess {
    /// The number of GPUs, or why none can be used.
    Counted(Result<usize, String>),
    /// The device is open.
    Opened(Opened),
    /// The answer to an order.
    Answer(Answer),
    /// The values of the device's sensors, and joules since it was opened.
    Sensors(SensorValues, Option<f64>),
    /// The device does not open because it is missing, or has failed, for this reason. The process
    /// ends.
    Failed { is_missing: bool, reason: String },
}

/// An open device.
#[derive(Serialize, Deserialize)]
struct Opened {
    info: DeviceInfo,
    starts: usize,
    in_flight: usize,
    calibration_key: Option<String>,
    /// The way to search that is kept for the next start.
    choice: Option<Choice>,
    /// What each wall that the process lacks would have prevented.
    missing_walls: Vec<String>,
}

/// A text of the device process for log and operator: printable and not too long.
fn reason(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(LONGEST_REASON).collect()
}

/// The bot's side of the channel to a device process that has just been started.
pub struct ProcessPipe {
    /// Reads what the process sends.
    pub reader: Box<dyn Read + Send>,
    /// Writes to the process.
    pub writer: Box<dyn Write + Send>,
    /// Ends the process if it still runs, and tells how it ended.
    pub end: Box<dyn FnOnce() -> String + Send>,
}

/// A device in a process of its own. The process ends with this value.
pub struct DeviceProcess {
    info: DeviceInfo,
    opened: Opened,
    pipe: OpenPipe,
    sensors: Sensors,
    sets: SentSets,
    last_order: u64,
    /// The orders in transit with their numbers of start points, oldest first.
    orders: VecDeque<(u64, usize)>,
}

impl DeviceProcess {
    /// Counts the GPUs, in the process at the other end of the pipe. Errors: why none can be used.
    pub fn count_gpus(pipe: ProcessPipe) -> Result<usize, String> {
        let (mut pipe, _) = OpenPipe::new(pipe, DeviceId::Cuda(0));
        pipe.send(&DeviceRequest::Count).map_err(|error| error.to_string())?;
        match pipe.receive(OPEN_TIMEOUT).map_err(|error| error.to_string())? {
            FromProcess::Counted(counted) => counted.map(|gpus| gpus.min(MAX_GPUS)).map_err(|text| reason(&text)),
            _ => Err("the device process does not count".to_owned()),
        }
    }

    /// Opens a device in the process at the other end of the pipe. The bot knows it as `id`.
    ///
    /// Errors: the device does not open; the process is not one.
    pub fn open(
        pipe: ProcessPipe,
        id: DeviceId,
        device: DeviceId,
        options: &SearchOptions,
    ) -> Result<DeviceProcess, SearchError> {
        let (mut pipe, sensors) = OpenPipe::new(pipe, id);
        pipe.send(&DeviceRequest::Open {
            device,
            options: Box::new(options.clone()),
            watts: options.restraints.caps_of(id).watts,
            calibrations: options.calibrations.all(),
        })?;
        let FromProcess::Opened(opened) = pipe.receive(OPEN_TIMEOUT)? else {
            return Err(pipe.failed("it answers what was not asked".to_owned()));
        };
        if !(1..=MAX_STARTS).contains(&opened.starts) || !(1..=MAX_IN_FLIGHT).contains(&opened.in_flight) {
            return Err(pipe.failed("its launches have too many or no start points".to_owned()));
        }
        let measured = Calibration { choice: opened.choice.clone(), ..Calibration::default() };
        if let Some(key) = opened.calibration_key.as_deref().filter(|key| key.len() <= LONGEST_REASON)
            && measured.choice.is_some()
            && measured.is_plausible()
        {
            options.calibrations.change(key, |kept| kept.choice = measured.choice);
        }
        let DeviceInfo { name, kernel, threads, warning, .. } = &opened.info;
        let warning = warning.as_deref().map(reason);
        let info = DeviceInfo { id, name: text(name), kernel: text(kernel), threads: *threads, warning };
        let sets = SentSets::new(0);
        let walls = opened.missing_walls.iter().take(MAX_MISSING_WALLS).map(|loss| reason(loss)).collect();
        let opened = Opened { missing_walls: walls, ..opened };
        Ok(DeviceProcess { info, opened, pipe, sensors, sets, last_order: 0, orders: VecDeque::new() })
    }

    /// What each wall that the process lacks would have prevented.
    pub fn missing_walls(&self) -> &[String] {
        &self.opened.missing_walls
    }
}

impl Searcher for DeviceProcess {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn starts(&self) -> usize {
        self.opened.starts
    }

    fn in_flight(&self) -> usize {
        self.opened.in_flight
    }

    fn calibration_key(&self) -> Option<&str> {
        self.opened.calibration_key.as_deref()
    }

    fn sensors(&self) -> Sensors {
        self.sensors.clone()
    }

    fn check(&mut self) -> Result<(), SearchError> {
        match self.pipe.received.try_recv() {
            Err(TryRecvError::Empty) => Ok(()),
            Ok(Err(error)) => Err(error),
            Ok(Ok(_)) => Err(self.pipe.failed("it answers what was not asked".to_owned())),
            Err(TryRecvError::Disconnected) => Err(self.pipe.ended()),
        }
    }

    fn submit(&mut self, launch: Launch) -> Result<(), SearchError> {
        let given = launch.starts.len();
        if given != self.starts() {
            return Err(SearchError::START_COUNT);
        }
        self.last_order += 1;
        for message in self.sets.order(self.last_order, &launch) {
            self.pipe.send(&message)?;
        }
        self.orders.push_back((self.last_order, given));
        Ok(())
    }

    fn collect(&mut self) -> Result<LaunchReport, SearchError> {
        let (order, starts) = self.orders.pop_front().ok_or(SearchError::NOTHING_SUBMITTED)?;
        let report = match self.pipe.receive(ANSWER_TIMEOUT)? {
            FromProcess::Answer(Answer { order: answered, result: Ok(report) }) if answered == order => report,
            // The reason follows.
            FromProcess::Answer(Answer { result: Err(Refusal::Device), .. }) => {
                return Err(match self.pipe.receive(ANSWER_TIMEOUT) {
                    Err(error) => error,
                    Ok(_) => self.pipe.failed("it does not say why it failed".to_owned()),
                });
            }
            _ => return Err(self.pipe.failed("it answers what was not asked, or refuses an order".to_owned())),
        };
        report.check(starts, MAX_HITS).map_err(|error| self.pipe.failed(error.to_string()))?;
        Ok(report)
    }
}

/// A message, or why there is none any more.
type Received = Result<FromProcess, SearchError>;

/// A channel to a process, whose messages a thread reads.
struct OpenPipe {
    device: DeviceId,
    writer: Box<dyn Write + Send>,
    /// Messages but those of sensors.
    received: Receiver<Received>,
    end: Option<Box<dyn FnOnce() -> String + Send>>,
}

impl OpenPipe {
    fn new(pipe: ProcessPipe, device: DeviceId) -> (OpenPipe, Sensors) {
        let ProcessPipe { mut reader, writer, end } = pipe;
        let (to, received) = mpsc::sync_channel(MAX_RECEIVED);
        let sensors = Sensors::unknown();
        let told = sensors.clone();
        let read = move || {
            read_all(&mut *reader, device, &to, &told);
            told.tell(SensorValues::default(), None);
        };
        // Without the thread nobody sends to `received`, as if the process had ended.
        let _ = std::thread::Builder::new().name(format!("{device} answers")).spawn(read);
        (OpenPipe { device, writer, received, end: Some(end) }, sensors)
    }

    fn send(&mut self, message: &impl Serialize) -> Result<(), SearchError> {
        frame::write(&mut *self.writer, message, LARGEST_ORDER).map_err(|_| match self.received.try_recv() {
            Ok(Err(error)) => error,
            _ => self.ended(),
        })
    }

    fn receive(&mut self, patience: Duration) -> Result<FromProcess, SearchError> {
        match self.received.recv_timeout(patience) {
            Ok(received) => received,
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
            Err(RecvTimeoutError::Timeout) => Err(self.failed(format!("no answer for {} s", patience.as_secs()))),
        }
    }

    fn failed(&self, reason: String) -> SearchError {
        SearchError::DeviceFailed { device: self.device, reason }
    }

    /// The error of a process that ended without a reason.
    fn ended(&mut self) -> SearchError {
        let status = self.end.take().map_or_else(String::new, |end| format!(" ({})", end()));
        self.failed(format!("its process has ended{status}"))
    }
}

impl Drop for OpenPipe {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            // A process that is asked can put the GPU's power limit back.
            let asked = self.writer.write_all(&[0; 4]).and_then(|()| self.writer.flush());
            let mut left = if asked.is_ok() { MAX_RECEIVED } else { 0 };
            while left > 0 && self.received.recv_timeout(END_TIMEOUT).is_ok() {
                left -= 1;
            }
            end();
        }
    }
}

/// Passes messages on until the process ends, or sends something that no device process sends.
fn read_all(reader: &mut dyn Read, device: DeviceId, to: &SyncSender<Received>, sensors: &Sensors) {
    let failed = |reason: String| Err(SearchError::DeviceFailed { device, reason });
    loop {
        let received = match frame::read(reader, LARGEST_ANSWER) {
            Ok(None) => return,
            Ok(Some(FromProcess::Sensors(values, joules))) => {
                sensors.tell(values, joules);
                continue;
            }
            Ok(Some(FromProcess::Failed { is_missing: true, reason: text })) => {
                Err(SearchError::NoSuchDevice { asked: device.to_string(), reason: reason(&text) })
            }
            Ok(Some(FromProcess::Failed { reason: text, .. })) => failed(reason(&text)),
            Ok(Some(message)) => Ok(message),
            // A process that is killed may leave a part of a message.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return,
            Err(error) => failed(format!("its process sends what is no message: {error}")),
        };
        let is_last = received.is_err();
        if to.try_send(received).is_err() || is_last {
            return;
        }
    }
}

fn answer(to: &mut impl Write, message: &FromProcess) -> io::Result<()> {
    frame::write(to, message, LARGEST_ANSWER)
}

/// Serves the bot at the other end of the pipe: opens the device that it asks for, and carries out
/// its orders until it goes. `kernels` keeps compiled kernels. `enclose` is called once the device is
/// open, takes every right that the search does not need, and returns what each wall that it could not
/// raise would have prevented. `give_up` ends the process at once: the
/// bot is gone, and the device does not end its launch.
///
/// Errors: the pipe fails.
pub fn serve_device(
    mut reader: impl Read + Send + 'static,
    mut writer: impl Write + Send + 'static,
    kernels: Option<Arc<dyn KernelStore>>,
    enclose: impl FnOnce() -> Vec<String>,
    give_up: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let request = match frame::read(&mut reader, LARGEST_ORDER)? {
        None => return Ok(()),
        Some(DeviceRequest::Count) => return answer(&mut writer, &FromProcess::Counted(cuda::device_count())),
        Some(request) => request,
    };
    let opened = open_requested(request, kernels);
    let (mut searcher, opened) = match opened {
        Ok(opened) => opened,
        Err(error) => return answer(&mut writer, &FromProcess::from(error)),
    };
    let sensors = searcher.sensors();
    // The first reading opens them, while files can be opened.
    answer(&mut writer, &FromProcess::Sensors(sensors.read(), sensors.joules()))?;
    let opened = Opened { missing_walls: enclose(), ..opened };
    answer(&mut writer, &FromProcess::Opened(opened))?;
    let writer = Arc::new(Mutex::new(writer));
    let send =
        move |message: &FromProcess| answer(&mut *writer.lock().unwrap_or_else(PoisonError::into_inner), message);
    let tell = {
        let send = send.clone();
        move || {
            while send(&FromProcess::Sensors(sensors.read(), sensors.joules())).is_ok() {
                std::thread::sleep(SENSORS_EVERY);
            }
        }
    };
    std::thread::Builder::new().name("sensors".to_owned()).spawn(tell)?;
    let (to, orders) = mpsc::sync_channel(MAX_WAITING);
    let receive = move || {
        let mut sets = ReceivedSets::default();
        while let Ok(Some(message)) = frame::read::<ToDevice>(&mut reader, LARGEST_ORDER) {
            if let Some(order) = sets.receive(message)
                && to.send(order).is_err()
            {
                break;
            }
        }
        drop(to);
        std::thread::sleep(2 * END_TIMEOUT);
        give_up();
    };
    std::thread::Builder::new().name("orders".to_owned()).spawn(receive)?;
    let next = |wait| match wait {
        true => orders.recv().map_err(|_| TryRecvError::Disconnected),
        false => orders.try_recv(),
    };
    let ended = carry_out(&mut *searcher, next, |answer| {
        let answer = Answer { result: answer.result.map(|report| report.reduced(MAX_HITS)), ..answer };
        // If the bot is gone, the orders end too.
        let _ = send(&FromProcess::Answer(answer));
    });
    match ended {
        Ok(()) => Ok(()),
        Err(error) => send(&FromProcess::from(error)),
    }
}

impl From<SearchError> for FromProcess {
    fn from(error: SearchError) -> FromProcess {
        let (is_missing, reason) = match error {
            SearchError::NoSuchDevice { reason, .. } => (true, reason),
            SearchError::DeviceFailed { reason, .. } => (false, reason),
            other => (false, other.to_string()),
        };
        FromProcess::Failed { is_missing, reason }
    }
}

fn open_requested(
    request: DeviceRequest,
    kernels: Option<Arc<dyn KernelStore>>,
) -> Result<(Box<dyn Searcher>, Opened), SearchError> {
    let DeviceRequest::Open { device, options, watts, calibrations } = request else {
        return Err(SearchError::NOTHING_SUBMITTED);
    };
    let restraints = Restraints { caps: Caps { watts, ..Caps::default() }, ..Restraints::default() };
    let calibrations = Calibrations::kept_by(calibrations, |_| {});
    let options = SearchOptions { restraints, calibrations: calibrations.clone(), kernels, ..*options };
    let searcher = open::open(device, &options)?;
    let calibration_key = searcher.calibration_key().map(str::to_owned);
    let choice = calibration_key.as_deref().and_then(|key| calibrations.get(key)?.choice);
    let (starts, in_flight) = (searcher.starts(), searcher.in_flight());
    let info = searcher.info().clone();
    let missing_walls = Vec::new();
    let opened = Opened { info, starts, in_flight, calibration_key, choice, missing_walls };
    Ok((searcher, opened))
}

#[cfg(test)]
mod tests;
