//! S3 on a GPU: after twenty jobs its memory holds no secret and no half of one, in any form. The
//! real vault, scheduler and kernels do the jobs. Then the device is closed, and the test reads all
//! memory that the searcher gave back, and all other GPU memory that this process can get. The test
//! binary can be copied to a machine with a GPU: `it gpu::secrets --nocapture --test-threads 1`.
//! Tests that cannot run are listed as skipped.

use crate::support::bot::Home;
use crate::support::half::Half;
use crate::support::harness::{Test, needs_gpu, skip, test};
use crate::support::leaks::{FORMS, Search, Secret, minus, pieces_of, start_secret_of};
use crate::support::vault::message_to;
use cudarc::driver::sys::CUmemPool_attribute::{
    self, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
};
use cudarc::driver::sys::CUmemoryPool;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, PinnedHostSlice, result};
use nostr_sdk::prelude::{Event, JsonUtil, Keys, PublicKey, UnwrappedGift};
use npubbot::clock::Clock;
use npubbot::job::{Asker, JobId, JobSpec};
use npubbot::key::{SplitTweak, VerifiedHit};
use npubbot::message::GiftWrap;
use npubbot::pattern::{ALPHABET, Pattern};
use npubbot::scheduler::{DeviceOpener, Find, FindOutcome, Health, Scheduler};
use npubbot::search::{DeviceChoice, DeviceId, SearchOptions, Surroundings};
use npubbot::vault::{Order, Vault};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use secp256k1::{SECP256K1, SecretKey};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, mpsc};
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
    let home = Home::new(&[]);
    let vault = home.vault();
    let secret = SecretKey::from_slice(home.keys().secret_key().as_secret_bytes()).unwrap();
    assert_eq!(secret.x_only_public_key(SECP256K1).0.serialize(), vault.public_key().to_bytes());
    (vault, secret)
}

/// Seals a found key or tweak for its asker, as `service::results` does.
fn redeem(vault: &Vault, find: &Find, to: PublicKey) -> Delivered {
    let message = message_to(to, "Here it is:");
    let ticket = vault.ticket_for_tests(&Order::any_key(message.to, find.half)).unwrap();
    let wrap = vault.redeem(find.start, &find.hit, &ticket, None, &message).unwrap();
    Delivered { job: find.job, hit: find.hit, wrap }
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
fn twenty_jobs(rng: &mut StdRng, options: &SearchOptions, characters: fn(i64) -> i64) -> (Scheduler, Vec<Secret>) {
    let (vault, identity) = vault();
    let jobs: HashMap<JobId, Asked> = (1..=JOBS).map(|job| (JobId(job), ask(rng, job, characters(job)))).collect();
    let askers: HashMap<JobId, PublicKey> = jobs.iter().map(|(&job, asked)| (job, asked.keys.public_key())).collect();
    let (sender, finds) = mpsc::channel();
    let (purse, to) = (vault.clone(), askers.clone());
    let on_find = move |find: Find| {
        let _ = sender.send(redeem(&purse, &find, to[&find.job]));
        FindOutcome::Done
    };
    let (opener, here) = (DeviceOpener::here(), Surroundings::new(Clock::System));
    let scheduler = Scheduler::start_with(options, opener, here, vault, on_find).unwrap();
    for (&job, asked) in &jobs {
        let half = asked.half.as_ref().map(Half::point);
        let patterns = vec![asked.pattern.clone()];
        let asker = Asker(askers[&job].to_bytes());
        scheduler.add(job, JobSpec { asker, half, ..JobSpec::local(patterns) });
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
    let (_scheduler, secrets) = twenty_jobs(&mut rng, &options, |job| 2 + job % 2);
    let numbers: BTreeSet<[u8; 32]> =
        secrets.iter().flat_map(Secret::relatives).map(|number| number.secret_bytes()).collect();
    let split = JOBS / SPLIT_EACH;
    assert_eq!(secrets.len() as i64, 1 + 2 * (JOBS - split) + 4 * split);
    assert_eq!(numbers.len(), 6 * secrets.len(), "all different");
}

/// Bytes read at once.
const CHUNK: usize = 256 << 20;
/// Bytes of device memory that stay free for the driver.
const LEFT_FREE: usize = 512 << 20;

/// Reads device memory and searches it.
struct Reader<'a> {
    stream: Arc<CudaStream>,
    search: &'a Search<'a>,
    chunk: PinnedHostSlice<u8>,
    bytes: usize,
    /// Bytes of pages that are not zero, which shows that the memory was written.
    written: usize,
}

impl<'a> Reader<'a> {
    fn new(stream: &Arc<CudaStream>, search: &'a Search<'a>) -> Reader<'a> {
        // SAFETY: the buffer is filled below before anybody reads it. Unlike the searcher's pinned
        // memory it is cached by the CPU, because it is read byte by byte.
        let mut chunk = unsafe { stream.context().alloc_pinned_with_flags::<u8>(CHUNK, 0) }.unwrap();
        chunk.as_mut_slice().unwrap().fill(0);
        Reader { stream: Arc::clone(stream), search, chunk, bytes: 0, written: 0 }
    }

    /// Every piece of a secret in this memory, with its position.
    fn look(&mut self, memory: &[CudaSlice<u8>]) -> Vec<(usize, &'a str)> {
        const PAGE: [u8; 4096] = [0; 4096];
        let mut found = Vec::new();
        for slice in memory {
            // The last seven bytes of each chunk are read again with the next, so a piece across
            // the border is found.
            for start in (0..slice.len()).step_by(CHUNK - 7) {
                let end = slice.len().min(start + CHUNK);
                let chunk = &mut self.chunk.as_mut_slice().unwrap()[..end - start];
                self.stream.memcpy_dtoh(&slice.slice(start..end), chunk).unwrap();
                self.stream.synchronize().unwrap();
                found.extend(self.search.places(chunk).into_iter().map(|(at, piece)| (start + at, piece)));
                self.written +=
                    chunk.chunks(4096).filter(|page| **page != PAGE[..page.len()]).map(<[u8]>::len).sum::<usize>();
            }
            self.bytes += slice.len();
        }
        found
    }
}

/// The memory pool of the device, from which all buffers are allocated.
struct DevicePool(CUmemoryPool);

impl DevicePool {
    /// Makes the pool keep memory that this process frees, so that it is neither cleared nor given
    /// to others. The driver must support memory pools.
    fn that_keeps(context: &CudaContext) -> DevicePool {
        let mut all = u64::MAX;
        // SAFETY: the device is that of a live context, and the attribute is a u64.
        unsafe {
            let pool = result::device::get_mem_pool(context.cu_device()).unwrap();
            result::mem_pool::set_attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, (&raw mut all).cast()).unwrap();
            DevicePool(pool)
        }
    }

    fn ask(&self, what: CUmemPool_attribute) -> usize {
        let mut bytes = 0u64;
        // SAFETY: the pool is the device's own, and both attributes are u64.
        unsafe { result::mem_pool::get_attribute(self.0, what, (&raw mut bytes).cast()) }.unwrap();
        bytes as usize
    }

    /// Freed bytes that the pool keeps.
    fn idle(&self) -> usize {
        self.ask(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT).saturating_sub(self.ask(CU_MEMPOOL_ATTR_USED_MEM_CURRENT))
    }

    /// Allocates the freed memory, and with `all` also everything else that is free on the device,
    /// without clearing it.
    fn take(&self, stream: &Arc<CudaStream>, all: bool) -> Vec<CudaSlice<u8>> {
        let mut taken = Vec::new();
        for size in [1 << 30, 64 << 20, 2 << 20, 64 << 10] {
            loop {
                let idle = self.idle();
                let (free, _) = stream.context().mem_get_info().unwrap();
                let may_grow = all && free > size + LEFT_FREE;
                if idle < size && !may_grow {
                    break;
                }
                // SAFETY: the memory is only copied out byte by byte, for which any content is
                // valid.
                let Ok(slice) = (unsafe { stream.alloc::<u8>(size) }) else { break };
                taken.push(slice);
                // This allocation was new memory, because the freed memory is in smaller parts.
                if self.idle() >= idle && !may_grow {
                    break;
                }
            }
        }
        stream.synchronize().unwrap();
        taken
    }
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
    let options = SearchOptions { devices: DeviceChoice::CudaOrdinal(0), ..SearchOptions::default() };
    // The patterns are hard enough for a GPU, which leaves those of fewer than four characters to
    // the CPU. The longest have seven characters and are found within a second.
    let (scheduler, mut secrets) = twenty_jobs(&mut rng, &options, |job| 5 + job / 2 % 3);
    let devices = scheduler.devices();
    let gpu = devices.iter().find(|device| device.id == DeviceId::Cuda(0)).unwrap();
    assert_eq!(gpu.health, Health::Working);
    println!("{JOBS} jobs delivered by {} ({}), {} candidates", gpu.name, gpu.kernel, gpu.candidates);
    // A secret that no asker has, to check that the search finds secrets.
    let planted = Secret::new("what was planted", number(&mut rng));
    let forms: Vec<Vec<u8>> = FORMS.iter().map(|form| (form.write)(&planted.number.secret_bytes())).collect();
    secrets.push(planted);
    let is_planted = |found: &(usize, &str)| found.1.starts_with("what was planted");
    let pieces = pieces_of(&secrets);
    println!("{} secrets, {} pieces", secrets.len(), pieces.len());
    let search = Search::new(&pieces);
    let mut reader = Reader::new(&stream, &search);

    // All memory of the searcher is freed with it, and not cleared.
    let held = pool.ask(CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    drop(scheduler);
    context.synchronize().unwrap();
    let mut given_back = pool.take(&stream, false);
    let found = reader.look(&given_back);
    let gb = |bytes: usize| bytes as f64 / 1e9;
    println!("of {:.3} GB given back: {:.3} GB read, {:.3} not zero", gb(held), gb(reader.bytes), gb(reader.written));
    assert!(found.is_empty(), "{found:#?}");
    assert!(reader.bytes > held / 2, "{} of {held} bytes were read", reader.bytes);
    assert!(reader.written > 10 << 20, "it was written: {} bytes", reader.written);

    // The positive control: a planted secret is found in each form.
    let slice = given_back.iter_mut().max_by_key(|slice| slice.len()).unwrap();
    let room = slice.len() / forms.len();
    let places: Vec<usize> = (0..forms.len()).map(|at| room * at + rng.random_range(0..room - 64)).collect();
    for (&place, form) in places.iter().zip(&forms) {
        stream.memcpy_htod(form, &mut slice.slice_mut(place..place + form.len())).unwrap();
    }
    stream.synchronize().unwrap();
    let found = reader.look(std::slice::from_ref(slice));
    assert!(found.iter().all(is_planted), "{found:#?}");
    for (form, &place) in FORMS.iter().zip(&places) {
        let is_it = |found: &(usize, &str)| found.0 == place && found.1.contains("(relative 0)");
        assert!(found.iter().any(is_it), "{} at {place}", form.name);
    }

    // All other memory, such as that of other allocators.
    let rest = pool.take(&stream, true);
    let found = reader.look(&rest);
    println!("in all: {:.3} of {:.3} GB read", gb(reader.bytes), gb(context.total_mem().unwrap()));
    assert!(found.iter().all(is_planted), "{found:#?}");
}
