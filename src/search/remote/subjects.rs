//! The subjects, streams and consumers of a worker, and what each user of the server may do.
//!
//! Each worker has a stream of its own for its orders, with one consumer for each of its devices.
//! No subject of one worker is a subject of another, so one cannot take or answer the other's
//! orders. There are no acknowledgements to forge: an order that is lost is not sent again.

use super::name::{MOST_DEVICES, RemoteId, WorkerName};

/// The first token of every subject of ours.
const ROOT: &str = "npubbot";
/// The first token of the subjects at which answers of the server arrive.
const INBOX: &str = "npubbot-inbox";
/// The name of the bot's user.
pub const BOT: &str = "bot";

/// The subject at which a device says, again and again, that it is there.
pub fn hello(id: RemoteId) -> String {
    format!("{ROOT}.{}.{}.hello", id.worker, id.device)
}

/// The hellos of all workers.
pub fn hellos() -> String {
    format!("{ROOT}.*.*.hello")
}

/// The device whose hello has this subject.
pub fn of_hello(subject: &str) -> Option<RemoteId> {
    let rest = subject.strip_prefix(ROOT)?.strip_prefix('.')?;
    let (worker, rest) = rest.split_once('.')?;
    let device: u8 = rest.strip_suffix(".hello")?.parse().ok()?;
    let worker = worker.parse().ok()?;
    (device < MOST_DEVICES).then_some(RemoteId { worker, device })
}

/// The orders of a device.
pub fn orders(id: RemoteId) -> String {
    format!("{ROOT}.{}.{}.orders", id.worker, id.device)
}

/// The orders of all devices of a worker.
pub fn all_orders(worker: WorkerName) -> String {
    format!("{ROOT}.{worker}.*.orders")
}

/// The answers of a device.
pub fn answers(id: RemoteId) -> String {
    format!("{ROOT}.{}.{}.answers", id.worker, id.device)
}

/// The stream of a worker's orders.
pub fn stream(worker: WorkerName) -> String {
    format!("{ROOT}-{worker}")
}

/// The consumer of a device, in its worker's stream.
pub fn consumer(id: RemoteId) -> String {
    id.device.to_string()
}

/// The subjects at which answers of the server to this user arrive begin with this.
pub fn inbox(user: &str) -> String {
    format!("{INBOX}.{user}")
}

/// The rights of a user: subjects at which it may publish, and those that it may hear.
pub struct Permissions {
    /// Subjects.
    pub publish: Vec<String>,
    /// Subjects.
    pub subscribe: Vec<String>,
}

impl Permissions {
    /// Those of the bot.
    pub fn of_bot() -> Permissions {
        Permissions {
            publish: vec![format!("{ROOT}.*.*.orders"), "$JS.API.>".to_owned()],
            subscribe: vec![hellos(), format!("{ROOT}.*.*.answers"), format!("{}.>", inbox(BOT))],
        }
    }

    /// Those of a worker: its own subjects.
    pub fn of_worker(worker: WorkerName) -> Permissions {
        let stream = stream(worker);
        Permissions {
            publish: vec![
                format!("{ROOT}.{worker}.*.hello"),
                format!("{ROOT}.{worker}.*.answers"),
                format!("$JS.API.CONSUMER.INFO.{stream}.*"),
                format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.*"),
            ],
            subscribe: vec![format!("{}.>", inbox(worker.as_str()))],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_names_its_device_by_its_subject() {
        let id = RemoteId { worker: "ann-1".parse().unwrap(), device: 15 };
        assert_eq!(of_hello(&hello(id)), Some(id));
        for bad in ["npubbot.ann.16.hello", "npubbot.ann.x.hello", "npubbot.ann.0.orders", "npubbot..0.hello", "x", ""]
        {
            assert_eq!(of_hello(bad), None, "{bad}");
        }
    }

    #[test]
    fn no_permission_of_a_worker_covers_a_subject_of_another() {
        let (ann, bob) = ("ann".parse().unwrap(), "bob".parse().unwrap());
        let Permissions { publish, subscribe } = Permissions::of_worker(ann);
        let others = Permissions::of_worker(bob);
        for own in publish.iter().chain(&subscribe) {
            let tokens: Vec<&str> = own.split('.').collect();
            assert!(tokens.iter().any(|token| *token == "ann" || *token == "npubbot-ann"), "{own}");
            assert!(!others.publish.contains(own) && !others.subscribe.contains(own), "{own}");
        }
    }
}
