//! The local socket of a running bot, for its operator.
//!
//! Each connection carries one request, which is one line of JSON. The answer is one or more lines
//! of JSON, and the last one is `end`. The socket is a file in the data folder that only its owner
//! and root can open. No secret passes through it: no request can ask for one, and no type of an
//! answer has room for one.
//!
//! ```text
//! → {"do":"resume"}
//! ← {"said":"the devices search again"}
//! ← "end"
//! ```

mod client;
mod protocol;
mod server;

pub use client::{ControlError, ask};
pub use protocol::{
    Finding, JobCommand, JobStatus, MAX_LISTED, OperatorCommand, ReplyLine, Severity, Status, View, socket,
};
pub use server::ControlServer;
