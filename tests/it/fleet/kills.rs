//! SIGKILL at random moments for workers, bot and server.

use super::server::client;
use crate::support::asker::{Asker, DeliveredKey};
use crate::support::bot::{BotProcess, ChildGuard, Home};
use crate::support::fleet::NatsServer;
use crate::support::harness::{Test, test};
use crate::support::relay::TestRelay;
use crate::support::{seed, until, wait_for};
use async_nats::connection::State;
use futures_util::StreamExt;
use npubbot::fleet::{BOT, Setup};
use npubbot::key::StartPoint;
use npubbot::search::orders::ToDevice;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{HashMap, HashSet};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const TESTS: &[Test] =
    &[test!(forty_jobs_survive_kills_of_workers_bot_and_server).long("5 min: forty jobs, a kill in each")];

const JOBS: usize = 40;
const WORKERS: [&str; 2] = ["ann", "bob"];
/// Characters of a request: 25 bits, so that workers search for it, for some seconds.
const LENGTH: usize = 5;
const ALPHABET: &[u8] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// An order, by the subject of its device and its number.
type Order = (String, u64);

/// The orders that the server passed on, with their start points.
type Seen = Arc<Mutex<Vec<(Order, Vec<StartPoint>)>>>;

/// Records the orders to all workers. The watcher connects as the bot, which the server's
/// configuration now allows to read orders too. It misses orders between the return of a killed
/// server and its own reconnection.
async fn watch(server: &mut NatsServer) -> (async_nats::Client, Seen) {
    let config = Setup::open(server.data.path()).unwrap().server_config();
    let text = std::fs::read_to_string(&config).unwrap();
    let answers = "subscribe: { allow: [\"npubbot.*.*.answers\"";
    assert_eq!(text.matches(answers).count(), 1, "{text}");
    server.kill();
    std::fs::write(&config, text.replace(answers, &format!("{answers}, \"npubbot.*.*.orders\""))).unwrap();
    server.start_again().await;
    let (watcher, _) = client(server, BOT).await;
    let mut orders = watcher.subscribe("npubbot.*.*.orders").await.unwrap();
    watcher.flush().await.unwrap();
    let seen = Seen::default();
    let kept = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Some(message) = orders.next().await {
            if let ToDevice::Order { order, starts, .. } = ToDevice::read(&message.payload).unwrap() {
                kept.lock().unwrap().push(((message.subject.to_string(), order), starts));
            }
        }
    });
    (watcher, seen)
}

fn worker(server: &NatsServer, name: &str) -> ChildGuard {
    ChildGuard(server.worker(&server.file(name)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

async fn forty_jobs_survive_kills_of_workers_bot_and_server() {
    let mut rng = StdRng::seed_from_u64(seed());
    let mut server = NatsServer::start(&WORKERS).await;
    let (watcher, seen) = watch(&mut server).await;
    let relay = TestRelay::start().await;
    let credentials = server.file(BOT);
    let fleet = format!("[fleet]\nserver = \"{}\"\ncredentials = \"{}\"\n", server.url(), credentials.display());
    // The bot's own device searches little, so that the bot needs the workers.
    let search = "[search]\ndevice = \"cpu\"\nthreads = 1\nshare_percent = 10\n";
    let home = Home::with(&[relay.url()], &format!("{fleet}{search}"));
    let mut bot: BotProcess = home.spawn_at_level("info").await;
    let mut workers = WORKERS.map(|name| worker(&server, name));
    let (mut askers, mut kills) = (Vec::new(), [0; 3]);
    for _ in 0..JOBS {
        let prefix: String = (0..LENGTH).map(|_| char::from(ALPHABET[rng.random_range(0..ALPHABET.len())])).collect();
        let asker = Asker::connect(&relay.url(), bot.public_key).await;
        asker.send(&prefix).await;
        askers.push((prefix, asker));
        // A sleep, because the moments of the kills are random.
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..6000))).await;
        let (victim, away) = (rng.random_range(0..3), Duration::from_millis(rng.random_range(0..1500)));
        kills[victim] += 1;
        match victim {
            0 => {
                let at = rng.random_range(0..WORKERS.len());
                workers[at] = {
                    drop(workers[at].0.kill());
                    tokio::time::sleep(away).await;
                    worker(&server, WORKERS[at])
                };
            }
            1 => {
                bot.kill();
                tokio::time::sleep(away).await;
                bot = home.spawn_at_level("info").await;
            }
            _ => {
                server.kill();
                tokio::time::sleep(away).await;
                server.start_again().await;
                let is_back = || watcher.connection_state() == State::Connected;
                until("the watcher is back", || async { is_back().then_some(()) }).await;
            }
        }
    }
    println!("killed: workers {}, bot {}, server {}", kills[0], kills[1], kills[2]);
    let mut keys = HashSet::new();
    for (prefix, asker) in &mut askers {
        // The acceptance and the key; with kills between them, the key may come first.
        let texts = [asker.next_text().await, asker.next_text().await];
        let found: Vec<DeliveredKey> = texts.iter().filter_map(|text| DeliveredKey::read(text)).collect();
        let [key] = &found[..] else { panic!("{} keys for {prefix}", found.len()) };
        key.assert_starts_with(prefix);
        assert!(keys.insert(key.npub.clone()));
    }
    // The answer to a last question comes after any message that was sent twice.
    for (prefix, asker) in &mut askers {
        asker.send("status").await;
        let last = asker.next_text().await;
        assert!(DeliveredKey::read(&last).is_none() && !last.contains(prefix.as_str()), "{prefix} again: {last}");
    }
    // A relay has a key before the relay's OK reaches the bot.
    let delivered = "SELECT count(*) FROM job WHERE state = 'delivered'";
    wait_for("all jobs are delivered", || home.count(delivered) == Some(JOBS as i64)).await;
    let seen = seen.lock().unwrap();
    let mut users: HashMap<Vec<u8>, &Order> = HashMap::new();
    for (order, starts) in seen.iter() {
        for start in starts {
            let user = users.entry(start.public_key().serialize().to_vec()).or_insert(order);
            assert_eq!(*user, order, "one start point in two orders");
        }
    }
    let of = |name: &str| seen.iter().filter(|((subject, _), _)| subject.contains(&format!(".{name}."))).count();
    println!("{} start points in {} orders, ann {}, bob {}", users.len(), seen.len(), of("ann"), of("bob"));
    assert!(WORKERS.iter().all(|name| of(name) > 50), "the workers were used");
    home.assert_sound();
}
