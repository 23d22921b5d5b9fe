//! The configuration of the NATS server: TLS, and an account for each user with its rights.

use crate::remote::{BOT, LARGEST_ANSWER, LARGEST_TO_WORKER, Permissions, Service, all_pings};
use crate::search::WorkerName;
use std::fmt::Write;
use std::path::Path;

/// The server's memory for the orders in transit to all workers.
const MEMORY: &str = "1GB";
/// The most connections of all users together.
const CONNECTIONS: usize = 10_000;
/// The most connections and subscriptions of a worker. A worker has one connection, and a second
/// one while it reconnects. Each device's request for orders has a subscription.
const OF_A_WORKER: (usize, usize) = (8, 256);

/// The text of the configuration of a server that keeps its files in `folder`.
pub fn server_config<'a>(
    folder: &Path,
    port: u16,
    bot: &'a str,
    workers: impl Iterator<Item = (WorkerName, &'a str)>,
) -> String {
    let path = |name: &str| quoted(&folder.join(name).display().to_string());
    let (mut exports, mut accounts) = (String::new(), String::new());
    for (name, key) in workers {
        exports += &exports_to(name);
        accounts += &account_of(name, key);
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
         accounts {{\n  {BOT} {{\n    jetstream: enabled\n{}    exports: [\n{exports}    ]\n  }}\n{accounts}}}\n",
        path("nats-server.pid"),
        LARGEST_TO_WORKER + 1024,
        path("server.pem"),
        path("server-key.pem"),
        path("jetstream"),
        user(bot, &Permissions::of_bot()),
    )
}

/// The exports of the bot's account to a worker: its pings, and the services that it may use.
fn exports_to(worker: WorkerName) -> String {
    let mut text = format!("      {{ stream: {}, accounts: [{}] }}\n", quoted(&all_pings(worker)), account(worker));
    for Service { subject, is_streamed, .. } in Service::of_worker(worker) {
        let answers = if is_streamed { "stream" } else { "singleton" };
        let (subject, account) = (quoted(&subject), account(worker));
        let _ = writeln!(text, "      {{ service: {subject}, response_type: {answers}, accounts: [{account}] }}");
    }
    text
}

/// The account of a worker. It sees no subjects of other workers.
fn account_of(worker: WorkerName, key: &str) -> String {
    let (connections, subscriptions) = OF_A_WORKER;
    let mut text = format!("  {} {{\n", account(worker));
    let _ = writeln!(
        text,
        "    limits {{ max_connections: {connections}, max_subscriptions: {subscriptions}, max_payload: {LARGEST_ANSWER} }}"
    );
    text += &user(key, &Permissions::of_worker(worker));
    text += "    imports: [\n";
    let _ = writeln!(text, "      {{ stream: {{ account: {BOT}, subject: {} }} }}", quoted(&all_pings(worker)));
    for Service { subject, local, .. } in Service::of_worker(worker) {
        let (subject, local) = (quoted(&subject), quoted(&local));
        let _ = writeln!(text, "      {{ service: {{ account: {BOT}, subject: {subject} }}, to: {local} }}");
    }
    text + "    ]\n  }\n"
}

fn account(worker: WorkerName) -> String {
    quoted(&format!("worker-{worker}"))
}

fn user(key: &str, permissions: &Permissions) -> String {
    let list = |subjects: &[String]| subjects.iter().map(|one| quoted(one)).collect::<Vec<_>>().join(", ");
    let Permissions { publish, subscribe } = permissions;
    format!(
        "    users: [{{\n      nkey: {key}\n      permissions: {{\n        \
         publish: {{ allow: [{}] }}\n        subscribe: {{ allow: [{}] }}\n      }}\n    }}]\n",
        list(publish),
        list(subscribe)
    )
}

/// A text in quotes, in which backslashes and quotes are escaped.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
