//! The subjects, streams and consumers of a worker, and the rights of each user of the server.
//!
//! Each worker has its own stream of orders, with one consumer for each of its devices. Workers
//! share no subject, so none can take or answer another's orders. There are no acknowledgements to
//! forge: a lost order is not sent again.
//!
//! Each worker has its own account. The subjects at which it publishes and asks the server for
//! orders are services of the bot's account. So the server's answers stay in the worker's account,
//! whatever reply subject the worker names. Within one account, a worker could make the server
//! publish to another worker's subjects.

use npubbot_miner::search::{MAX_DEVICES, RemoteId, WorkerName};

/// The first token of every subject of ours.
const ROOT: &str = "npubbot";
/// The first token of the subjects at which answers of the server arrive.
const INBOX: &str = "npubbot-inbox";
/// The prefix of the server's API for workers. At the usual `$JS.API` a worker finds the API of its
/// own account, which refuses it.
pub const API: &str = "npubbot-api";
/// The name of the bot's user.
pub const BOT: &str = "bot";

/// The subject of the hellos that a device repeats.
pub fn hello(id: RemoteId) -> String {
    format!("{ROOT}.{}.{}.hello", id.worker, id.device)
}

/// The name of the stream that keeps the newest hello of each device. No worker's stream can have
/// this name.
pub const HELLOS: &str = "npubbot_hellos";

/// The subjects of the hellos of all workers' devices.
pub fn hellos() -> Vec<String> {
    (0..MAX_DEVICES).map(|device| format!("{ROOT}.*.{device}.hello")).collect()
}

/// The device whose hello has this subject; `None` if it is not the subject of a hello.
pub fn of_hello(subject: &str) -> Option<RemoteId> {
    let rest = subject.strip_prefix(ROOT)?.strip_prefix('.')?;
    let (worker, rest) = rest.split_once('.')?;
    let device: u8 = rest.strip_suffix(".hello")?.parse().ok()?;
    let worker = worker.parse().ok()?;
    (device < MAX_DEVICES).then_some(RemoteId { worker, device })
}

/// The subject of a device's orders.
pub fn orders(id: RemoteId) -> String {
    format!("{ROOT}.{}.{}.orders", id.worker, id.device)
}

/// The subjects of the orders of all devices of a worker.
pub fn all_orders(worker: WorkerName) -> String {
    format!("{ROOT}.{worker}.*.orders")
}

/// The subject of a device's answers.
pub fn answers(id: RemoteId) -> String {
    format!("{ROOT}.{}.{}.answers", id.worker, id.device)
}

/// The name of the stream of a worker's orders.
pub fn stream(worker: WorkerName) -> String {
    format!("{ROOT}-{worker}")
}

/// The name of a device's consumer in its worker's stream.
pub fn consumer(id: RemoteId) -> String {
    id.device.to_string()
}

/// The beginning of the subjects at which the server's answers to this user arrive.
pub fn inbox(user: &str) -> String {
    format!("{INBOX}.{user}")
}

/// The services of the bot's account that a worker may use: the subject in the bot's account, that in
/// the worker's, and whether a request has several answers.
pub fn services_for(worker: WorkerName) -> [(String, String, bool); 4] {
    let told = |what: &str| {
        let subject = format!("{ROOT}.{worker}.*.{what}");
        (subject.clone(), subject, false)
    };
    let asked = |what: &str, is_streamed| {
        let rest = format!("{what}.{}.*", stream(worker));
        (format!("$JS.API.{rest}"), format!("{API}.{rest}"), is_streamed)
    };
    [told("hello"), told("answers"), asked("CONSUMER.INFO", false), asked("CONSUMER.MSG.NEXT", true)]
}

/// The subjects to which a user may publish, and those to which it may subscribe.
pub type Rights = (Vec<String>, Vec<String>);

/// The rights of the bot.
pub fn rights_of_bot() -> Rights {
    let publish = vec![format!("{ROOT}.*.*.orders"), "$JS.API.>".to_owned()];
    (publish, vec![format!("{ROOT}.*.*.answers"), format!("{}.>", inbox(BOT))])
}

/// The rights of a worker: its own subjects.
pub fn rights_of_worker(worker: WorkerName) -> Rights {
    let publish = services_for(worker).map(|(_, local, _)| local).to_vec();
    (publish, vec![format!("{}.>", inbox(worker.as_str()))])
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
        let (publish, subscribe) = rights_of_worker(ann);
        let others = rights_of_worker(bob);
        let (orders, answers) =
            (vec![format!("{ROOT}.*.*.orders"), "$JS.API.>".to_owned()], format!("{ROOT}.*.*.answers"));
        assert_eq!(rights_of_bot(), (orders, vec![answers, "npubbot-inbox.bot.>".to_owned()]));
        for own in publish.iter().chain(&subscribe) {
            let tokens: Vec<&str> = own.split('.').collect();
            assert!(tokens.iter().any(|token| *token == "ann" || *token == "npubbot-ann"), "{own}");
            assert!(!others.0.contains(own) && !others.1.contains(own), "{own}");
        }
    }
}
