//! The walls of this process that could not be raised, for the operator.

use npubbot_vault::MissingWall;
use std::sync::OnceLock;

/// Set once, when the walls were raised. A process that raises none, such as a test, lacks none.
static MISSING: OnceLock<Vec<MissingWall>> = OnceLock::new();

/// Notes the walls that could not be raised.
pub fn note_missing(missing: Vec<MissingWall>) {
    let _ = MISSING.set(missing);
}

/// The walls of this process that could not be raised.
pub fn missing() -> &'static [MissingWall] {
    MISSING.get().map_or(&[], Vec::as_slice)
}
