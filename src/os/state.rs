//! States of a service.

/// The state that a service manager is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It serves.
    Ready,
    /// It lives.
    Alive,
    /// It is about to end.
    Stopping,
}
