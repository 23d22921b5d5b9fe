//! The fleet's NATS server: the rights of its users, and the search while it is away.

use crate::support::bot::ChildGuard;
use crate::support::fleet::{Headquarters, NatsServer, needs_nats};
use crate::support::harness::{Test, test};
use crate::support::{PATIENCE, program, until, wait_for};
use async_nats::{Client, ConnectOptions, Event};
use futures_util::StreamExt;
use npubbot::fleet::{BOT, Credentials, Setup};
use npubbot::scheduler::Health;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

pub const TESTS: &[Test] = &[
    test!(the_search_goes_on_without_the_server_and_workers_come_back_with_it).slow(),
    test!(a_wrong_credential_is_refused_and_a_removed_worker_is_cut_off).slow(),
    test!(a_client_without_tls_gets_nothing),
    test!(a_worker_can_do_nothing_at_the_subjects_of_others),
    test!(the_server_answers_a_worker_at_its_own_subjects_only),
    test!(the_server_takes_the_configuration_and_has_no_secret),
];

async fn the_search_goes_on_without_the_server_and_workers_come_back_with_it() {
    let mut server = NatsServer::start(&["ann"]).await;
    let bot = Headquarters::start(&server);
    let copy = server.data.path().join("copy.creds");
    std::fs::copy(server.file("ann"), &copy).unwrap();
    let worker = ChildGuard(server.worker(&server.file("ann")).spawn().unwrap());
    bot.works("ann").await;
    bot.order(1, "qqqqqqqqqqqq");
    bot.goes_on("ann").await;
    // Bot and worker have read their credentials and no longer need the files.
    std::fs::remove_file(server.file("ann")).unwrap();
    std::fs::remove_file(server.file(BOT)).unwrap();
    server.kill();
    wait_for("the bot notices", || !bot.status().connected).await;
    let is_out = |health: &Health| matches!(health, Health::Out(reason) if reason.contains("the server is away"));
    until("the worker has no orders", || async { bot.device("ann").filter(|device| is_out(&device.health)) }).await;
    let own = || bot.scheduler.devices().into_iter().find(|device| device.id.to_string() == "cpu").unwrap();
    let before = own();
    // The bot's own device takes over the patterns of workers.
    wait_for("the bot's own device goes on", || own().candidates > before.candidates + 10).await;
    assert_eq!(own().health, Health::Working);
    server.start_again().await;
    until("the server is back", || async { bot.status().connected.then_some(()) }).await;
    bot.goes_on("ann").await;
    // The worker is killed. Either reason is right: on a loaded machine its last order may be older
    // than its last hello.
    drop(worker);
    let ends = ["no sign of life", "no answer to an order"];
    let is_out = |health: &Health| matches!(health, Health::Out(reason) if ends.iter().any(|end| reason.contains(end)));
    until("it is missed", || async { bot.device("ann").filter(|device| is_out(&device.health)) }).await;
    let _again = ChildGuard(server.worker(&copy).spawn().unwrap());
    bot.goes_on("ann").await;
    bot.order(2, "cafe");
    bot.found(2).await;
    assert!(bot.refused().is_empty());
}

/// Runs a worker until it ends. Returns its exit code and its output.
async fn ended(mut worker: Command) -> (Option<i32>, String) {
    let mut worker = ChildGuard(worker.stderr(Stdio::piped()).spawn().unwrap());
    let status = worker.ended().await;
    (status.code(), std::io::read_to_string(worker.0.stderr.take().unwrap()).unwrap())
}

async fn a_wrong_credential_is_refused_and_a_removed_worker_is_cut_off() {
    let server = NatsServer::start(&["ann", "bob"]).await;
    let bot = Headquarters::start(&server);
    // The credentials of another fleet's worker, with this server's certificate.
    let other = tempfile::tempdir().unwrap();
    let file = Setup::init(other.path(), "localhost", 1).unwrap().add("ann".parse().unwrap()).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let seed = text.lines().find(|line| line.starts_with("SU")).unwrap();
    let certificate = std::fs::read_to_string(server.data.path().join("fleet/server.pem")).unwrap();
    std::fs::write(&file, Credentials::text("ann", seed, &certificate)).unwrap();
    let (code, said) = ended(server.worker(&file)).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("refuses this worker") && !said.contains(seed), "{said}");
    // A server with another certificate than the worker expects.
    let stranger = NatsServer::start(&["ann"]).await;
    let (code, said) = ended(stranger.worker(&server.file("ann"))).await;
    assert!(code == Some(2) && said.contains("certificate"), "{code:?}: {said}");

    // The worker uses a copy of its credentials, because removing the worker deletes the operator's
    // file.
    let copy = server.data.path().join("copy.creds");
    std::fs::copy(server.file("ann"), &copy).unwrap();
    let mut worker = ChildGuard(server.worker(&copy).stderr(Stdio::null()).spawn().unwrap());
    bot.goes_on("ann").await;
    let mut setup = Setup::open(server.data.path()).unwrap();
    setup.remove("ann".parse().unwrap()).unwrap();
    server.reload();
    until("it is cut off", || async { bot.device("ann").filter(|device| device.health != Health::Working) }).await;
    assert_eq!(worker.ended().await.code(), Some(2));
    assert!(bot.status().connected, "the bot stays connected");
    let _other = ChildGuard(server.worker(&server.file("bob")).spawn().unwrap());
    bot.goes_on("bob").await;
    assert_ne!(bot.device("ann").unwrap().health, Health::Working);
    // A worker that is added while the server runs.
    let added = setup.add("carl".parse().unwrap()).unwrap();
    // The server refuses it until it has read its new configuration.
    let _added = loop {
        server.reload();
        let mut carl = ChildGuard(server.worker(&added).stderr(Stdio::null()).spawn().unwrap());
        let works = until("carl works or is refused", || {
            let has_ended = carl.0.try_wait().unwrap().is_some();
            let works = bot.device("carl").is_some_and(|one| one.health == Health::Working && one.rate.is_some());
            std::future::ready((has_ended || works).then_some(works))
        });
        if works.await {
            break carl;
        }
    };
    assert_eq!(bot.device("bob").unwrap().health, Health::Working);
}

async fn a_client_without_tls_gets_nothing() {
    let server = NatsServer::start(&["ann"]).await;
    let mut socket = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut info = String::new();
    BufReader::new(socket.try_clone().unwrap()).read_line(&mut info).unwrap();
    assert!(info.starts_with("INFO ") && info.contains("\"tls_required\":true"), "{info}");
    let _ = socket.write_all(b"CONNECT {\"verbose\":true}\r\nSUB npubbot.> 1\r\nPING\r\n");
    let mut answer = Vec::new();
    // The server closes the connection.
    let _ = socket.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(!answer.contains("+OK") && !answer.contains("PONG"), "{answer}");
}

/// A client with a user's credentials, and the errors that the server sends to it.
pub async fn client(server: &NatsServer, user: &str) -> (Client, Arc<Mutex<Vec<String>>>) {
    let text = std::fs::read_to_string(server.file(user)).unwrap();
    let seed = text.lines().find(|line| line.starts_with("SU")).unwrap().to_owned();
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&said);
    let options = ConnectOptions::with_nkey(seed)
        .require_tls(true)
        .add_root_certificates(server.file(user))
        .custom_inbox_prefix(format!("npubbot-inbox.{user}"))
        .event_callback(move |event| {
            if let Event::ServerError(error) = event {
                heard.lock().unwrap().push(error.to_string());
            }
            std::future::ready(())
        });
    (options.connect(server.url()).await.unwrap(), said)
}

async fn a_worker_can_do_nothing_at_the_subjects_of_others() {
    let server = NatsServer::start(&["ann", "bob"]).await;
    let (bot, _) = client(&server, BOT).await;
    let (ann, said) = client(&server, "ann").await;
    let mut heard = bot.subscribe("npubbot.*.*.answers").await.unwrap();
    bot.flush().await.unwrap();
    let forbidden = [
        "npubbot.bob.0.hello",
        "npubbot.bob.0.answers",
        "npubbot.ann.0.orders",
        "npubbot.bob.0.orders",
        "$JS.ACK.npubbot-bob.0.1.1.1.1.0",
        "$JS.API.CONSUMER.MSG.NEXT.npubbot-bob.0",
        "$JS.API.STREAM.CREATE.own",
        "$JS.API.STREAM.DELETE.npubbot-ann",
        "$JS.API.CONSUMER.CREATE.npubbot-ann",
        "npubbot-inbox.bob.x",
    ];
    for subject in forbidden {
        ann.publish(subject, "x".into()).await.unwrap();
        ann.flush().await.unwrap();
        let is_denied = |text: &String| text.to_lowercase().contains(&subject.to_lowercase());
        until(subject, || async { said.lock().unwrap().iter().any(is_denied).then_some(()) }).await;
    }
    for subject in
        ["npubbot.>", "npubbot.bob.0.orders", "npubbot.ann.0.orders", ">", "npubbot-inbox.>", "npubbot-inbox.bob.>"]
    {
        let before = said.lock().unwrap().len();
        let _subscription = ann.subscribe(subject).await.unwrap();
        ann.flush().await.unwrap();
        wait_for(subject, || said.lock().unwrap().len() > before).await;
    }
    // Allowed messages arrive, and no forbidden one has arrived before them.
    ann.publish("npubbot.ann.0.answers", "own".into()).await.unwrap();
    let message = tokio::time::timeout(PATIENCE, heard.next()).await.unwrap().unwrap();
    assert_eq!((message.subject.as_str(), &message.payload[..]), ("npubbot.ann.0.answers", &b"own"[..]));
}

/// A request names the subject for its answer, and the server may publish anywhere. If all users
/// were in one account, a worker could make the server answer at another worker's subjects.
async fn the_server_answers_a_worker_at_its_own_subjects_only() {
    let server = NatsServer::start(&["ann", "bob"]).await;
    let headquarters = Headquarters::start(&server);
    let _worker = ChildGuard(server.worker(&server.file("ann")).spawn().unwrap());
    // Now ann has a stream and a consumer.
    headquarters.works("ann").await;
    let (bot, _) = client(&server, BOT).await;
    let (ann, said) = client(&server, "ann").await;
    let mut heard = bot.subscribe("npubbot.bob.0.answers").await.unwrap();
    bot.flush().await.unwrap();
    let requests = [
        ("npubbot-api.CONSUMER.INFO.npubbot-ann.0", ""),
        ("npubbot-api.CONSUMER.MSG.NEXT.npubbot-ann.0", r#"{"batch":1,"no_wait":true}"#),
        ("npubbot-api.CONSUMER.MSG.NEXT.npubbot-ann.7", ""),
    ];
    for (subject, body) in requests {
        ann.publish_with_reply(subject, "npubbot.bob.0.answers", body.into()).await.unwrap();
    }
    // Requests for an answer at ann's own subject are answered, so the server has also handled the
    // earlier ones.
    for _ in 0..3 {
        let answer = ann.request("npubbot-api.CONSUMER.INFO.npubbot-ann.0", "".into()).await.unwrap();
        assert!(answer.payload.starts_with(br#"{"type":"io.nats.jetstream"#), "{answer:?}");
    }
    ann.publish("npubbot.ann.0.answers", "own".into()).await.unwrap();
    ann.flush().await.unwrap();
    // Anything from the server at bob's subject would arrive before bob's own message.
    let (bob, _) = client(&server, "bob").await;
    bob.publish("npubbot.bob.0.answers", "own".into()).await.unwrap();
    let message = tokio::time::timeout(PATIENCE, heard.next()).await.unwrap().unwrap();
    assert_eq!(&message.payload[..], b"own", "{message:?}; the server said {:?}", said.lock().unwrap());
}

/// `nats-server` itself checks the configuration.
async fn the_server_takes_the_configuration_and_has_no_secret() {
    let program = needs_nats();
    let data = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = program::command().arg("fleet").args(arguments).arg("--data").arg(data.path()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", program::stderr(&output));
        (program::stdout(&output), program::stderr(&output))
    };
    let (_, said) = run(&["init", "--host", "nats.example"]);
    assert!(said.contains("tls://nats.example:4222") && said.contains("nats-server -c nats-server.conf"), "{said}");
    let (file, said) = run(&["add", "ann"]);
    assert!(said.contains("npubbot worker --nats tls://nats.example:4222 --creds ann.creds"), "{said}");
    assert!(said.contains("nats-server --signal reload=") && said.contains("nats-server.pid"), "{said}");
    assert_eq!(Credentials::read(file.trim().as_ref()).unwrap().user(), "ann");
    let config = Setup::open(data.path()).unwrap().server_config();
    let folder = config.parent().unwrap();
    let checked =
        std::process::Command::new(program).current_dir(folder).args(["-t", "-c", "nats-server.conf"]).output();
    let checked = checked.unwrap();
    assert!(checked.status.success(), "{}", program::stderr(&checked));
    let text = std::fs::read_to_string(&config).unwrap();
    assert!(!text.contains(&folder.display().to_string()), "the folder can be copied to another machine: {text}");
    run(&["remove", "ann"]);
    // What root makes in a service's folder is for the service.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(data.path(), Some(1234), Some(1234)).unwrap();
        run(&["add", "bob"]);
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(std::os::unix::fs::MetadataExt::uid(&path.metadata().unwrap()), 1234, "{}", path.display());
        }
    }
    let wrong = program::run(&["fleet", "remove", "ann", "--data", data.path().to_str().unwrap()]);
    assert_eq!(wrong.status.code(), Some(2), "{}", program::stderr(&wrong));
}
