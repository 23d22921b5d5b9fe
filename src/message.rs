//! Messages to askers, before and after they are sealed.

pub use npubbot_vault::message::{Answered, GiftWrap, OutgoingMessage};
