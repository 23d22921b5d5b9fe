//! Waiting until a point in time.

use std::time::Instant;

/// Waits until `time`; returns at once if it has passed. (Tokio's timer takes a millisecond even
/// then, which is longer than decrypting a gift wrap.)
pub(in crate::nostr) async fn wait_until(time: Instant) {
    if time > Instant::now() {
        tokio::time::sleep_until(time.into()).await;
    }
}
