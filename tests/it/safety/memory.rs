//! Once a key is sealed, the process that made it has no copy of the key in memory. This process
//! makes and seals keys, then scans its own memory for them. A child process opens each message as
//! the asker and returns the key masked, so that the scan does not find its own input.
use crate::support::harness::{Test, child, test};
use crate::support::hex;
use nostr::nips::nip59::UnwrappedGift;
use nostr::{Event, FromBech32, JsonUtil, Keys, SecretKey};
use npubbot::clock::Clock;
use npubbot::job::Asker;
use npubbot::key::{Offset, Rotation, Tweak, VerifiedHit};
use npubbot::message::OutgoingMessage;
use npubbot::vault::Vault;
use std::io::{Read, Seek, SeekFrom, Write};
use std::process::Stdio;

pub const TESTS: &[Test] = &[
    test!(open_a_message_as_its_asker).part(),
    test!(a_sealed_key_leaves_no_copy_in_memory_and_a_planted_one_is_found),
];

const MASK: u8 = 0xa5;
const KEYS: usize = 20;

fn masked(bytes: &[u8]) -> String {
    hex::encode(bytes.iter().map(|byte| byte ^ MASK).collect::<Vec<u8>>())
}

/// Runs in the child process: reads a wrap, writes the masked key in every form it could have in
/// memory.
fn open_a_message_as_its_asker() {
    let asker = Keys::parse(&std::env::var("TEST_ASKER").unwrap()).unwrap();
    let mut json = String::new();
    std::io::stdin().read_to_string(&mut json).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let wrap = Event::from_json(json).unwrap();
    let text = runtime.block_on(UnwrappedGift::from_gift_wrap(&asker, &wrap)).unwrap().rumor.content;
    let nsec = text.lines().find(|line| line.starts_with("nsec1")).unwrap();
    let raw = SecretKey::from_bech32(nsec).unwrap().to_secret_bytes();
    let reversed: Vec<u8> = raw.iter().rev().copied().collect();
    let digits = hex::encode(raw);
    for (form, bytes) in
        [("nsec", &nsec.as_bytes()[5..]), ("raw", &raw), ("limbs", &reversed), ("hex", digits.as_bytes())]
    {
        println!("\nfound {form} {}", masked(bytes));
    }
}

/// Names the forms whose bytes occur somewhere in this process's writable memory.
fn present(needles: &[(String, Vec<u8>)]) -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut memory = std::fs::File::open("/proc/self/mem").unwrap();
    let mut firsts = vec![Vec::new(); 256];
    for needle in needles {
        firsts[usize::from(needle.1[0] ^ MASK)].push(needle);
    }
    let mut present = Vec::new();
    let mut chunk = Vec::new();
    for line in maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|flags| flags.starts_with("rw"))) {
        let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let (start, end) = (u64::from_str_radix(start, 16).unwrap(), u64::from_str_radix(end, 16).unwrap());
        chunk.resize((end - start) as usize, 0);
        if memory.seek(SeekFrom::Start(start)).is_err() || memory.read_exact(&mut chunk).is_err() {
            continue;
        }
        for at in 0..chunk.len() {
            for (form, needle) in &firsts[usize::from(chunk[at])] {
                let window = chunk.get(at..at + needle.len());
                if window.is_some_and(|window| window.iter().zip(needle).all(|(a, b)| a ^ MASK == *b)) {
                    present.push(format!("{form} in {line}"));
                }
            }
        }
        chunk.fill(0);
    }
    present
}

fn a_sealed_key_leaves_no_copy_in_memory_and_a_planted_one_is_found() {
    let vault = Vault::without_identity().unwrap().with_clock(Clock::at(1_800_000_000));
    let asker = Keys::generate();
    let message = OutgoingMessage {
        to: Asker(asker.public_key().to_bytes()),
        encryption_key: None,
        text: "Your key is ready.".to_owned(),
        in_reply_to: None,
        subject: None,
        expires_at: 2_000_000_000,
        not_before: 0,
    };
    let offset = Offset::of_point(1 << 40, 77, Rotation::ALL[2]);
    let wraps: Vec<String> = (0..KEYS)
        .map(|number| {
            let (start, point) = vault.open_start().unwrap();
            let tweak = Tweak { offset, rotation: Rotation::ALL[number % 3] };
            let hit = VerifiedHit::recompute(point, tweak).unwrap();
            vault.redeem_any(start, &hit, &message).unwrap().events().last().unwrap().to_owned()
        })
        .collect();

    let mut needles = Vec::new();
    for wrap in &wraps {
        let mut child = child("safety::memory::open_a_message_as_its_asker")
            .env("TEST_ASKER", asker.secret_key().to_secret_hex())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(wrap.as_bytes()).unwrap();
        let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        for line in output.lines().filter_map(|line| line.strip_prefix("found ")) {
            let (form, bytes) = line.split_once(' ').unwrap();
            needles.push((form.to_owned(), hex::decode(bytes)));
        }
    }
    assert_eq!(needles.len(), 4 * KEYS);
    let leaks = present(&needles);
    assert!(leaks.is_empty(), "{} copies: {leaks:#?}", leaks.len());

    let planted: Vec<u8> = needles[4].1.iter().map(|byte| byte ^ MASK).collect();
    assert!(!present(&needles).is_empty(), "a planted copy of {} bytes is found", planted.len());
    std::hint::black_box(&planted);
}
