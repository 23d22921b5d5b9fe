//! The configuration of the NATS server: TLS, one account, and what each user may do.

use crate::search::remote::{BOT, LARGEST_ANSWER, LARGEST_TO_WORKER, Permissions, WorkerName};
use std::fmt::Write;
use std::path::Path;

/// Memory for orders on their way, of all workers.
const MEMORY: &str = "1GB";
/// Most connections of all users together.
const CONNECTIONS: usize = 10_000;

/// A user of the server.
struct User<'a> {
    name: &'a str,
    /// The public part of its NKEY.
    key: &'a str,
    permissions: Permissions,
}

/// The text of the configuration of a server that keeps its files in `folder`.
pub fn server_config<'a>(
    folder: &Path,
    port: u16,
    bot: &'a str,
    workers: impl Iterator<Item = (WorkerName, &'a str)>,
) -> String {
    let path = |name: &str| quoted(&folder.join(name).display().to_string());
    let mut users = user(&User { name: BOT, key: bot, permissions: Permissions::of_bot() });
    for (name, key) in workers {
        users += &user(&User { name: name.as_str(), key, permissions: Permissions::of_worker(name) });
    }
    format!(
        "# Made by `npubbot fleet`, which writes it anew at each change.\n\
         server_name: npubbot-fleet\n\
         listen: \"0.0.0.0:{port}\"\n\
         pid_file: {}\n\
         max_payload: {}\n\
         max_connections: {CONNECTIONS}\n\
         # Without this block, connections would be readable. No client may connect without TLS.\n\
         tls {{\n  cert_file: {}\n  key_file: {}\n  timeout: 5\n}}\n\
         # Orders are kept in memory only, for seconds.\n\
         jetstream {{\n  store_dir: {}\n  max_memory_store: {MEMORY}\n}}\n\
         accounts {{\n  FLEET {{\n    jetstream: enabled\n    users: [\n{users}    ]\n  }}\n}}\n",
        path("nats-server.pid"),
        LARGEST_ANSWER.max(LARGEST_TO_WORKER) + 1024,
        path("server.pem"),
        path("server-key.pem"),
        path("jetstream"),
    )
}

fn user(user: &User<'_>) -> String {
    let list = |subjects: &[String]| subjects.iter().map(|one| quoted(one)).collect::<Vec<_>>().join(", ");
    let mut text = format!("      # {}\n      {{\n        nkey: {}\n", user.name, user.key);
    let Permissions { publish, subscribe } = &user.permissions;
    let _ = writeln!(text, "        permissions: {{");
    let _ = writeln!(text, "          publish: {{ allow: [{}] }}", list(publish));
    let _ = writeln!(text, "          subscribe: {{ allow: [{}] }}", list(subscribe));
    text + "        }\n      }\n"
}

/// A text in quotes. A path with a quote in it is not expected; it would be refused by the server.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
