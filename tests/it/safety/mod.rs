//! Promises S1 to S15: no secret leaks, and nobody can stop the service.

pub mod captured;
pub mod chosen_points;
pub mod copies;
pub mod economy;
pub mod floods;
pub mod leaks;
pub mod walls;
pub mod wraps;
