//! Promises R1 to R12: nothing is lost and nothing is doubled.

pub mod answers;
pub mod clock;
pub mod damage;
pub mod disk;
pub mod load;
pub mod parts;
pub mod person;
pub mod power_loss;
pub mod process;
pub mod soak;
pub mod steps;
