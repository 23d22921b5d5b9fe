//! The program from an operator's view.

pub mod askers;
pub mod backup;
pub mod commands;
pub mod control;
pub mod doctor;
pub mod drivers;
pub mod mine;
pub mod monitoring;
pub mod places;
pub mod reference;
