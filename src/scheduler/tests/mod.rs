//! The way from a device to a key, tried with devices that lie.

mod forged;
