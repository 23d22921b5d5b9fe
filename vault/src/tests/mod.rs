//! The vault's behaviour. The tests are inside the room so that they can replace the source of
//! randomness by a failing one.

mod decoupled;
mod half;
mod identity;
mod messages;
mod process;
mod public;
mod related;
mod start_points;
mod tickets;
mod wraps;

use super::*;
use crate::key::{Npub, Offset, Rotation, StartPoint, Tweak, VerifiedHit};
use crate::message::{Answered, Asker, GiftWrap, OutgoingMessage, RumorId};
use nostr::{Event, FromBech32, JsonUtil, Keys};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use secp256k1::Scalar;

/// A random generator that prints its seed. `NPUBBOT_TEST_SEED` sets the seed, to repeat a run.
fn seeded() -> StdRng {
    let seed = std::env::var("NPUBBOT_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("NPUBBOT_TEST_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

fn no_randomness(_: &mut [u8]) -> Result<(), VaultError> {
    Err(VaultError::NoRandomness)
}

fn vault() -> Vault {
    Vault::without_identity().unwrap()
}

fn asker(keys: &Keys) -> Asker {
    Asker(keys.public_key().to_bytes())
}

fn message(to: &Keys) -> OutgoingMessage {
    OutgoingMessage {
        to: asker(to),
        encryption_key: None,
        text: "Your key is ready.".to_owned(),
        in_reply_to: None,
        subject: None,
        expires_at: 2_000_000_000,
        not_before: 0,
    }
}

/// The event, or the one with the key in it.
fn event(wrap: &GiftWrap) -> Event {
    Event::from_json(wrap.events().last().unwrap()).unwrap()
}

/// A hit at a random offset and rotation, as a device would claim it.
fn hit(point: StartPoint, rng: &mut StdRng) -> VerifiedHit {
    let mut bytes: [u8; 32] = rng.random();
    bytes[0] &= 0x7f;
    let offset = Offset::from_scalar(Scalar::from_be_bytes(bytes).unwrap());
    let rotation = Rotation::ALL[rng.random_range(0..3)];
    VerifiedHit::recompute(point, Tweak { offset, rotation }).unwrap()
}

/// The npub of an nsec, computed by `nostr`.
fn npub_of(nsec: &str) -> Npub {
    Npub(Keys::new(nostr::SecretKey::from_bech32(nsec).unwrap()).public_key().to_bytes())
}
