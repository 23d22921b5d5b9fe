//! The program as an operator meets it.

pub mod commands;
pub mod doctor;
pub mod page;
pub mod places;
