//! Orders: launches of a device that searches elsewhere, in a process of its own or on another
//! machine.
//!
//! ```text
//! SentSets ──▶ ToDevice::{Patterns, Order} ──▶ ReceivedSets ──▶ carry_out ──▶ Searcher
//!                                    Answer ◀──────────────────────┘
//! ```
//!
//! Patterns are sent once, as a set; orders refer to it, and the next set is sent as the difference
//! to one that the device has. What a device claims is bounded, and verified by whoever ordered.

mod messages;
mod process;
mod sets;

pub use messages::{
    Answer, LARGEST_ORDER, MAX_CANDIDATES, MAX_STARTS, ReceivedOrder, Refusal, ToDevice, WireError, carry_out, decode,
    encode, is_text, text,
};
pub use process::{DeviceProcess, ProcessPipe, serve_device};
pub use sets::{PatternChange, ReceivedSets, SentSets};
