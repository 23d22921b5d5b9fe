use super::*;
use crate::key::{Offset, Rotation, StartPoint, Tweak, VerifiedHit};
use crate::pattern::PatternSet;
use crate::search::ClaimedHit;
use crate::search::cpu::KernelChoice;
use secp256k1::{PublicKey, SECP256K1, SecretKey};
use std::io::pipe;

const DEVICE: DeviceId = DeviceId::Cuda(3);

fn start(byte: u8) -> StartPoint {
    StartPoint::new(PublicKey::from_secret_key(SECP256K1, &SecretKey::from_slice(&[byte; 32]).unwrap()))
}

fn launch(patterns: &[&str]) -> Launch {
    let patterns = PatternSet::new(patterns.iter().map(|text| text.parse().unwrap()).collect());
    Launch { starts: vec![start(5)], patterns: Arc::new(patterns), remaining: None }
}

fn options() -> SearchOptions {
    SearchOptions { threads: Some(1), cpu_kernel: KernelChoice::Portable, ..SearchOptions::default() }
}

/// A pipe to `serve_device` on a thread.
fn served() -> ProcessPipe {
    let ((from_bot, to_process), (from_process, to_bot)) = (pipe().unwrap(), pipe().unwrap());
    let process = std::thread::spawn(move || serve_device(from_bot, to_bot, None, Vec::new, || {}));
    let end = Box::new(move || format!("{:?}", process.join().unwrap()));
    ProcessPipe { reader: Box::new(from_process), writer: Box::new(to_process), end }
}

/// A pipe to a process that has sent these bytes and ended.
fn said(bytes: Vec<u8>) -> ProcessPipe {
    let end = Box::new(|| "exit status: 7".to_owned());
    ProcessPipe { reader: Box::new(io::Cursor::new(bytes)), writer: Box::new(io::sink()), end }
}

fn frames(messages: &[FromProcess]) -> Vec<u8> {
    let mut bytes = Vec::new();
    messages.iter().for_each(|message| answer(&mut bytes, message).unwrap());
    bytes
}

fn open_over(pipe: ProcessPipe) -> Result<DeviceProcess, SearchError> {
    DeviceProcess::open(pipe, DEVICE, DeviceId::Cpu, &options())
}

fn opened() -> Opened {
    Opened {
        info: DeviceInfo {
            id: DeviceId::Cpu,
            name: "a\u{7}name".to_owned(),
            kernel: "none".to_owned(),
            threads: 1,
            warning: None,
        },
        starts: 1,
        in_flight: 2,
        calibration_key: None,
        choice: None,
        missing_walls: Vec::new(),
    }
}

#[test]
fn a_device_process_searches_as_its_device_does() {
    // Figures of other devices, of which some were not measured, go to the process too.
    let partly = Calibration { top_words: Some(1e6), ..Calibration::default() };
    let known = BTreeMap::from([("one".to_owned(), partly), ("another".to_owned(), Calibration::default())]);
    let calibrations = Calibrations::kept_by(known, |_| {});
    let options = SearchOptions { calibrations, ..options() };
    let mut process = DeviceProcess::open(served(), DEVICE, DeviceId::Cpu, &options).unwrap();
    let mut direct = open::open(DeviceId::Cpu, &options).unwrap();
    let (own, info) = (direct.info().clone(), process.info().clone());
    assert!(!info.name.is_empty(), "the processor's name, or that it is a CPU");
    assert_eq!((info.id, info.name, info.threads), (DEVICE, text(&own.name), own.threads));
    assert_eq!((process.starts(), process.in_flight()), (direct.starts(), direct.in_flight()));
    assert_eq!(process.calibration_key(), direct.calibration_key());
    for patterns in [&["qq", "zz"][..], &["qq", "zz"], &["qq", "pp"], &["*cafe"]] {
        direct.submit(launch(patterns)).unwrap();
        process.submit(launch(patterns)).unwrap();
        process.check().unwrap();
        let (direct, report) = (direct.collect().unwrap(), process.collect().unwrap());
        let npubs = |report: &LaunchReport| -> Vec<String> {
            let npub = |hit: &ClaimedHit| VerifiedHit::recompute(start(5), hit.tweak).unwrap().npub().to_string();
            report.hits.iter().take(20).map(npub).collect()
        };
        assert!(report.candidates > 1000 && !report.busy.is_zero(), "{report:?}");
        // The speed of the machine decides how far a launch goes.
        let common = direct.hits.len().min(report.hits.len()).min(20);
        assert_eq!(npubs(&direct)[..common], npubs(&report)[..common], "{patterns:?}");
    }
    assert!(matches!(process.submit(Launch { starts: vec![], ..launch(&["qq"]) }), Err(SearchError::Misused(_))));
    assert!(matches!(process.collect(), Err(SearchError::Misused(_))));
}

#[test]
fn a_process_without_its_device_says_why() {
    let open = |device| DeviceProcess::open(served(), device, device, &options());
    let missing = open(DeviceId::Cuda(9999)).err().unwrap();
    assert!(matches!(&missing, SearchError::NoSuchDevice { asked, .. } if asked == "cuda:9999"), "{missing}");
    let counted = DeviceProcess::count_gpus(served());
    assert_eq!(counted, cuda::device_count());
}

/// A failure has its reason, and what a process says is fit for a log.
#[test]
fn a_device_that_fails_during_a_launch_says_why() {
    let answer = FromProcess::Answer(Answer { order: 1, result: Err(Refusal::Device) });
    let failed = FromProcess::Failed { is_missing: false, reason: "CUDA error 719\n".to_owned() };
    for (messages, reason) in [
        (vec![FromProcess::Opened(opened()), answer, failed], "CUDA error 719"),
        (vec![FromProcess::Opened(opened())], "exit status: 7"),
    ] {
        let mut process = open_over(said(frames(&messages))).unwrap();
        assert_eq!(process.info().name, "aname");
        // The process may be gone before or after the order is sent.
        let error = process.submit(launch(&["qq"])).and_then(|()| process.collect()).unwrap_err().to_string();
        assert!(error.contains(reason) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn what_no_device_process_sends_is_an_error() {
    let report = |start, candidates| {
        let tweak = Tweak { offset: Offset::of_point(1, 1, Rotation::ALL[0]), rotation: Rotation::ALL[0] };
        LaunchReport { candidates, hits: vec![ClaimedHit { start, tweak }], ..LaunchReport::default() }
    };
    let answer = |order, result| FromProcess::Answer(Answer { order, result });
    let bad_answers = [
        answer(2, Ok(report(0, 9))),
        answer(1, Ok(report(1, 9))),
        answer(1, Ok(report(0, 0))),
        answer(1, Ok(report(0, u64::MAX))),
        answer(1, Err(Refusal::Patterns)),
        FromProcess::Counted(Ok(1)),
        FromProcess::Opened(opened()),
    ];
    for (number, bad) in bad_answers.into_iter().enumerate() {
        let mut process = open_over(said(frames(&[FromProcess::Opened(opened()), bad]))).unwrap();
        let error = process.submit(launch(&["qq"])).and_then(|()| process.collect());
        assert!(matches!(error, Err(SearchError::DeviceFailed { .. })), "{number}: {error:?}");
    }
    let flood: Vec<FromProcess> = (0..100).map(|order| answer(order, Ok(report(0, 9)))).collect();
    let mut process = open_over(said([frames(&[FromProcess::Opened(opened())]), frames(&flood)].concat())).unwrap();
    // Nothing was asked. The answers may not have come yet.
    while process.check().is_ok() {
        std::thread::sleep(Duration::from_millis(1));
    }
    for bad in [
        Opened { starts: 0, ..opened() },
        Opened { starts: MAX_STARTS + 1, ..opened() },
        Opened { in_flight: 0, ..opened() },
        Opened { in_flight: MAX_IN_FLIGHT + 1, ..opened() },
    ] {
        assert!(open_over(said(frames(&[FromProcess::Opened(bad)]))).is_err());
    }
}

#[test]
fn a_larger_message_than_the_largest_answer_is_not_read() {
    let tweak = Tweak { offset: Offset::of_point(u64::MAX, -1, Rotation::ALL[1]), rotation: Rotation::ALL[2] };
    let hits = vec![ClaimedHit { start: MAX_STARTS - 1, tweak }; MAX_HITS];
    let largest = LaunchReport { candidates: u64::MAX, hits, busy: Duration::MAX, is_cut_short: true };
    frames(&[FromProcess::Answer(Answer { order: u64::MAX, result: Ok(largest) })]);
    let mut bytes = ((LARGEST_ANSWER + 1) as u32).to_le_bytes().to_vec();
    bytes.extend([0; 100]);
    let error = open_over(said(bytes)).err().unwrap().to_string();
    assert!(error.contains("too large"), "{error}");
}

proptest::proptest! {
    #[test]
    fn changed_bytes_are_an_error_or_within_the_bounds(
        changes in proptest::collection::vec((proptest::prelude::any::<usize>(), proptest::prelude::any::<u8>()), 1..6),
    ) {
        let tweak = Tweak { offset: Offset::of_point(1, 1, Rotation::ALL[0]), rotation: Rotation::ALL[0] };
        let hits = vec![ClaimedHit { start: 0, tweak }; 3];
        let report = LaunchReport { candidates: 9, hits, ..LaunchReport::default() };
        let answer = FromProcess::Answer(Answer { order: 1, result: Ok(report) });
        let mut bytes = frames(&[FromProcess::Opened(opened()), answer]);
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        if let Ok(mut process) = open_over(said(bytes))
            && process.submit(launch(&["qq"])).is_ok()
            && let Ok(report) = process.collect()
        {
            proptest::prop_assert!(report.check(1, MAX_HITS).is_ok());
        }
    }
}
