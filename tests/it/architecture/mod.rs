//! The structure of the source code: who may import whom, and which words and lengths are allowed.

pub mod imports;
mod modules;
pub mod os;
pub mod rules;
pub mod secrets;
mod tokens;
pub mod words;
