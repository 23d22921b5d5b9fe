//! The program as an operator meets it.

pub mod backup;
pub mod commands;
pub mod control;
pub mod doctor;
pub mod page;
pub mod places;
