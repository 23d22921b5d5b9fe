//! S3 on a GPU: after twenty jobs its memory holds no secret and no half of one, in any form. The
//! real vault, scheduler and kernels do the jobs. Then the test reads every buffer of the searcher
//! while the device is still open, and all other GPU memory that this process can get. The test
//! binary can be copied to a machine with a GPU: `it gpu::secrets --nocapture --test-threads 1`.
//! Tests that cannot run are listed as skipped.

use super::device_memory::{DevicePool, Reader};
use crate::support::half::Half;
use crate::support::harness::{Test, needs_gpu, skip, test};
use crate::support::leaks::{FORMS, Found, Pieces, Secret, minus, start_secret_of};
use cudarc::driver::CudaContext;
use nostr_sdk::prelude::{Event, JsonUtil, Keys, UnwrappedGift};
use npubbot::clock::Clock;
use npubbot::job::{Asker, JobId, JobSpec};
use npubbot::key::{SplitTweak, VerifiedHit};
use npubbot::message::{GiftWrap, OutgoingMessage};
use npubbot::pattern::{ALPHABET, Pattern};
use npubbot::scheduler::{DeviceOpener, Find, FindOutcome, Health, Scheduler};
use npubbot::search::cuda::buffers::{Buffer, BufferWindow, open_watched};
use npubbot::search::{self, DeviceChoice, DeviceId, SearchOptions, Searcher, Surroundings, cuda};
use npubbot::vault::{Order, Unlock, Vault};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use secp256k1::{SECP256K1, SecretKey};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(the_secrets_behind_twenty_jobs_are_those_of_their_askers),
    test!(twenty_jobs_leave_no_secret_in_the_memory_of_a_gpu),
];

const JOBS: i64 = 20;
/// Every third job is a split job.
const SPLIT_EACH: i64 = 3;

fn number(rng: &mut StdRng) -> SecretKey {
    SecretKey::from_slice(&rng.random::<[u8; 32]>()).expect("all but one in 2^127")
}

// Twenty jobs.

/// The wrap that an asker receives, and the verified hit behind it.
struct Delivered {
    job: JobId,
    hit: VerifiedHit,
    wrap: GiftWrap,
    tweak: Option<SplitTweak>,
}

/// A job with its asker's secrets.
struct Asked {
    pattern: Pattern,
    keys: Keys,
    half: Option<Half>,
}

/// The number encoded in `nsec1…`.
fn number_in(text: &str) -> SecretKey {
    let (_, bytes) = bech32::decode(text).unwrap();
    SecretKey::from_slice(&bytes[bytes.len() - 32..]).unwrap()
}

fn ask(rng: &mut StdRng, job: i64, characters: i64) -> Asked {
    let name = (0..characters).map(|_| char::from(ALPHABET[rng.random_range(0..32)]));
    let half = (job % SPLIT_EACH == 0).then(Half::draw);
    Asked { pattern: Pattern::parse(&name.collect::<String>()).unwrap(), keys: Keys::generate(), half }
}

/// A vault with an identity file, like the bot's, and the secret of that identity.
fn vault() -> (Vault, SecretKey) {
    use age::secrecy::ExposeSecret;
    let folder = tempfile::tempdir().unwrap();
    let (key_file, identity) = (folder.path().join("key"), folder.path().join("identity.age"));
    let key = age::x25519::Identity::generate();
    std::fs::write(&key_file, key.to_string().expose_secret()).unwrap();
    let vault = Vault::create(&identity, &Unlock::AgeIdentityFile(key_file)).unwrap();
    let locked = std::fs::read(&identity).unwrap();
    let opened = age::Decryptor::new(&locked[..]).unwrap().decrypt(std::iter::once(&key as &dyn age::Identity));
    let text = std::io::read_to_string(opened.unwrap()).unwrap();
    let secret = number_in(text.lines().find(|line| line.starts_with("nsec1")).unwrap());
    assert_eq!(secret.x_only_public_key(SECP256K1).0.serialize(), vault.public_key().to_bytes());
    (vault, secret)
}

/// Seals a found key, or with `split` a tweak, for its asker, as `service::results` does.
fn redeem(vault: &Vault, find: &Find, to: Asker, split: bool) -> Delivered {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let mut message = OutgoingMessage {
        to,
        encryption_key: None,
        text: "Here it is:".to_owned(),
        in_reply_to: None,
        subject: None,
        expires_at: now + 86_400,
        not_before: 0,
    };
    let ticket = vault.ticket_for_tests(&Order::any_key(to, find.half)).unwrap();
    let (wrap, tweak) = if split {
        let tweak = vault.reveal(find.start, &find.hit, &ticket).unwrap();
        message.text = tweak.to_string();
        (vault.seal(&message).unwrap(), Some(tweak))
    } else {
        (vault.redeem(find.start, &find.hit, &ticket, None, &message).unwrap(), None)
    };
    Delivered { job: find.job, hit: find.hit, wrap, tweak }
}

/// The secrets behind a delivered key, computed on the asker's side: the key, its start secret, and
/// for a split key both halves, the asker's and the bot's.
fn secrets_of(asked: &Asked, delivered: &Delivered, text: &str) -> Vec<Secret> {
    let job = delivered.job;
    let named = |what: &str, number| Secret::new(format!("{what} of job {job}"), number);
    let tweak = delivered.hit.tweak();
    let (key, halves) = match &asked.half {
        None => (number_in(text.lines().find(|line| line.starts_with("nsec1")).unwrap()), None),
        Some(half) => {
            let split: SplitTweak = text.parse().unwrap();
            assert_eq!(Some(split), delivered.tweak);
            (half.combine(&split).secret_key(), Some(half.0))
        }
    };
    assert_eq!(key.x_only_public_key(SECP256K1).0.serialize(), delivered.hit.npub().0);
    let start = start_secret_of(&key, tweak.rotation, tweak.offset.scalar());
    assert_eq!(
        &start.public_key(SECP256K1),
        delivered.hit.point().public_key(),
        "the start point is the one that was searched"
    );
    let mut secrets = vec![named("the key", key), named("the start", start)];
    if let Some(own) = halves {
        secrets.extend([named("the asker's half", own), named("the bot's half", minus(&start, &own.into()))]);
    }
    secrets
}

/// Runs the jobs; `characters` gives the length of each. Returns the scheduler, still running with
/// its devices open, and the secrets behind the jobs.
fn twenty_jobs(
    rng: &mut StdRng,
    options: &SearchOptions,
    opener: DeviceOpener,
    characters: fn(i64) -> i64,
) -> (Scheduler, Vec<Secret>) {
    let (vault, identity) = vault();
    let jobs: HashMap<JobId, Asked> = (1..=JOBS).map(|job| (JobId(job), ask(rng, job, characters(job)))).collect();
    let askers: HashMap<JobId, (Asker, bool)> = jobs
        .iter()
        .map(|(&job, asked)| (job, (Asker(asked.keys.public_key().to_bytes()), asked.half.is_some())))
        .collect();
    let (sender, finds) = mpsc::channel();
    let (purse, to) = (vault.clone(), askers.clone());
    let on_find = move |find: Find| {
        let (asker, split) = to[&find.job];
        let _ = sender.send(redeem(&purse, &find, asker, split));
        FindOutcome::Done
    };
    let scheduler = Scheduler::start_with(options, opener, Surroundings::new(Clock::System), vault, on_find).unwrap();
    for (&job, asked) in &jobs {
        let half = asked.half.as_ref().map(Half::point);
        let patterns = vec![asked.pattern.clone()];
        scheduler.add(job, JobSpec { asker: askers[&job].0, half, ..JobSpec::local(patterns) });
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut secrets = vec![Secret::new("the bot's identity", identity)];
    for _ in 0..JOBS {
        let delivered = finds.recv_timeout(Duration::from_secs(120)).expect("the next key");
        let asked = &jobs[&delivered.job];
        let wrap = Event::from_json(delivered.wrap.events().last().unwrap()).unwrap();
        let text = runtime.block_on(UnwrappedGift::from_gift_wrap(&asked.keys, &wrap)).unwrap().rumor.content;
        secrets.extend(secrets_of(asked, &delivered, &text));
    }
    // A job leaves the pool shortly after its key was sealed.
    let patience = Instant::now() + Duration::from_secs(10);
    while scheduler.open_jobs() > 0 {
        assert!(Instant::now() < patience, "{} jobs are left", scheduler.open_jobs());
        std::thread::sleep(Duration::from_millis(5));
    }
    (scheduler, secrets)
}

fn the_secrets_behind_twenty_jobs_are_those_of_their_askers() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let options = SearchOptions { devices: DeviceChoice::Cpu, ..SearchOptions::default() };
    // Each key, start secret and half is checked against its public point.
    let (_scheduler, secrets) = twenty_jobs(&mut rng, &options, DeviceOpener::here(), |job| 2 + job % 2);
    let numbers: BTreeSet<[u8; 32]> =
        secrets.iter().flat_map(Secret::relatives).map(|number| number.secret_bytes()).collect();
    let split = JOBS / SPLIT_EACH;
    assert_eq!(secrets.len() as i64, 1 + 2 * (JOBS - split) + 4 * split);
    assert_eq!(numbers.len(), 6 * secrets.len(), "all different");
}

/// Does twenty jobs on GPU 0. The returned window shows the searcher's buffers.
fn twenty_jobs_on_a_gpu(rng: &mut StdRng) -> (Scheduler, BufferWindow, Vec<Secret>) {
    let windows: Arc<Mutex<Vec<BufferWindow>>> = Arc::default();
    let opened = Arc::clone(&windows);
    let opener = DeviceOpener::new(cuda::device_count, move |device: DeviceId, options: &SearchOptions| match device {
        DeviceId::Cuda(ordinal) => {
            let (searcher, window) = open_watched(ordinal)?;
            opened.lock().unwrap().push(window);
            Ok(Box::new(searcher) as Box<dyn Searcher>)
        }
        DeviceId::Cpu | DeviceId::Remote(_) => search::open(device, options),
    });
    let options = SearchOptions { devices: DeviceChoice::CudaOrdinal(0), ..SearchOptions::default() };
    // The patterns are hard enough for a GPU, which leaves those of fewer than four characters to
    // the CPU. The longest have seven characters and are found within a second.
    let (scheduler, secrets) = twenty_jobs(rng, &options, opener, |job| 5 + job / 2 % 3);
    let devices = scheduler.devices();
    let gpu = devices.iter().find(|device| device.id == DeviceId::Cuda(0)).unwrap();
    assert_eq!(gpu.health, Health::Working);
    println!("{JOBS} jobs delivered by {} ({}), {} candidates", gpu.name, gpu.kernel, gpu.candidates);
    let mut windows = std::mem::take(&mut *windows.lock().unwrap());
    assert_eq!(windows.len(), 1, "the device was opened once");
    (scheduler, windows.remove(0), secrets)
}

fn describe(secrets: &[Secret], buffer: &str, found: &[Found]) -> Vec<String> {
    let one = |one: &Found| {
        format!(
            "{} (relative {}) as {}: in {buffer} at {}",
            secrets[one.secret].name, one.relative, FORMS[one.form].name, one.at
        )
    };
    found.iter().map(one).collect()
}

fn twenty_jobs_leave_no_secret_in_the_memory_of_a_gpu() {
    needs_gpu();
    let context = CudaContext::new(0).unwrap();
    if !context.has_async_alloc() {
        skip("the driver has no memory pools, so memory that was given back cannot be read");
    }
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    // SAFETY: everything this test allocates is used on one stream, and read only after waiting for
    // it.
    unsafe { context.disable_event_tracking() };
    let stream = context.new_stream().unwrap();
    let pool = DevicePool::that_keeps(&context);

    let began = Instant::now();
    let (scheduler, window, mut secrets) = twenty_jobs_on_a_gpu(&mut rng);
    println!("after {:.1?}", began.elapsed());
    let real = secrets.len();
    // Two secrets that no asker has, to check that the search finds secrets: one in a buffer, one
    // in freed memory.
    secrets.extend([Secret::new("what was planted", number(&mut rng)), Secret::new("a lost one", number(&mut rng))]);
    let (planted, lost) = (real, real + 1);
    let pieces = Pieces::of(&secrets);
    println!("{real} secrets; with their relatives and forms {} numbers, {} pieces", pieces.needles, pieces.len());
    let mut reader = Reader::new(&context, &pieces);

    // The searcher's own buffers, with the device open.
    let began = Instant::now();
    let leaks = window
        .look(|buffers| {
            let mut leaks = Vec::new();
            for buffer in buffers {
                let before = (reader.bytes, reader.written);
                leaks.extend(describe(&secrets, buffer.name, &reader.look(buffer)));
                let kind = if buffer.is_on_device() { "device" } else { "pinned" };
                let (bytes, written) = (reader.bytes - before.0, reader.written - before.1);
                println!("  {:<17} {kind} {bytes:>11} bytes, {written:>11} in words not zero", buffer.name);
            }
            leaks
        })
        .unwrap();
    let held = reader.bytes;
    let (account, took) = (reader.account(), began.elapsed());
    println!("every buffer of the searcher: {account}, {} found, in {took:.1?}", leaks.len());
    assert!(leaks.is_empty(), "{leaks:#?}");

    // All other memory: memory that this process has freed, and free memory.
    let forms: Vec<Vec<u8>> = FORMS.iter().map(|form| (form.write)(&secrets[lost].number.secret_bytes())).collect();
    let given_back = stream.alloc_zeros::<u8>(64 << 20).unwrap();
    stream.synchronize().unwrap();
    for (at, bytes) in forms.iter().enumerate() {
        Buffer::on_device("to be given back", &given_back).plant((4 << 20) * at + 3, bytes).unwrap();
    }
    drop(given_back);
    stream.synchronize().unwrap();
    let began = Instant::now();
    let rest = pool.take(&stream, true);
    let found: Vec<Found> =
        rest.iter().flat_map(|slice| reader.look(&Buffer::on_device("all other memory", slice))).collect();
    let missing = context.total_mem().unwrap().saturating_sub(reader.bytes + held);
    let (seen, leaks): (Vec<Found>, Vec<Found>) = found.into_iter().partition(|one| one.secret == lost);
    let seen = if seen.is_empty() { "not seen" } else { "seen" };
    let account = reader.account();
    println!(
        "all other memory: {account}, {} found, in {:.1?}; {:.3} GB of the device could not be had (its driver's, and some \
         left free); what had been given back before was {seen}",
        leaks.len(),
        began.elapsed(),
        missing as f64 / 1e9,
    );
    assert!(leaks.is_empty(), "{:#?}", describe(&secrets, "all other memory", &leaks));
    drop(rest);
    stream.synchronize().unwrap();
    // Returns the scanned memory, so that only the searcher's memory is freed next.
    pool.empty();

    // The positive control: a secret planted in a buffer is found, in each form.
    window
        .look(|buffers| {
            for buffer in buffers.iter().filter(|buffer| buffer.is_on_device() && buffer.bytes() >= 1 << 20) {
                let slot = buffer.bytes() / FORMS.len();
                let places: Vec<usize> =
                    (0..FORMS.len()).map(|at| slot * at + rng.random_range(0..slot - 64)).collect();
                for (form, &place) in FORMS.iter().zip(&places) {
                    buffer.plant(place, &(form.write)(&secrets[planted].number.secret_bytes())).unwrap();
                }
                let found = reader.look(buffer);
                assert!(
                    found.iter().all(|one| one.secret == planted),
                    "{:#?}",
                    describe(&secrets, buffer.name, &found)
                );
                for (form, place) in FORMS.iter().zip(&places) {
                    let is_it = |one: &Found| one.at == *place && one.relative == 0;
                    assert!(found.iter().any(is_it), "{} in {} at {place}", form.name, buffer.name);
                }
                println!("  planted in {}: {} forms, each found", buffer.name, FORMS.len());
            }
        })
        .unwrap();

    // The memory that the searcher frees at the end holds nothing but the planted secret.
    reader.account();
    drop((scheduler, window));
    context.synchronize().unwrap();
    let given_back = pool.take(&stream, false);
    let found: Vec<Found> =
        given_back.iter().flat_map(|slice| reader.look(&Buffer::on_device("given back", slice))).collect();
    let (seen, leaks): (Vec<Found>, Vec<Found>) = found.into_iter().partition(|one| one.secret >= real);
    println!(
        "after the device was closed, what it gave back: {}, {} found, and {} pieces of what was planted",
        reader.account(),
        leaks.len(),
        seen.len()
    );
    assert!(leaks.is_empty(), "{:#?}", describe(&secrets, "given back", &leaks));
}
