//! The files of an operator who has workers on other machines: the keys of the users of the NATS
//! server, its certificate and its configuration.
//!
//! | file in `fleet/` of the data folder | content |
//! | --- | --- |
//! | `fleet.toml` | host, port, and the public key of each user |
//! | `nats-server.conf` | made of it: an account for the bot and one for each worker |
//! | `server.pem`, `server-key.pem` | the certificate that clients must see, and its key |
//! | `bot.creds`, `NAME.creds` | the credentials of the bot, and of a worker |

mod error;
mod files;
mod server_config;
mod setup;

pub use error::FleetError;
pub use setup::{BOT_CREDENTIALS, FOLDER, Reloaded, Setup};
