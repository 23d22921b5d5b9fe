//! Promises R1 to R12: nothing is lost and nothing is doubled.

pub mod clock;
pub mod damage;
pub mod load;
pub mod parts;
pub mod power_loss;
pub mod process;
pub mod soak;
pub mod steps;
