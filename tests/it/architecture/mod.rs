//! Rules for the source code: which rooms may import which, and which words and lengths are
//! allowed.

pub mod imports;
mod modules;
pub mod os;
pub mod rules;
pub mod secrets;
mod tokens;
pub mod words;
