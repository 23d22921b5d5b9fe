//! The local socket of a running bot: the operator's requests, `npubbot top`, and the attempts of
//! strangers on the same machine.

use crate::support::bot::{ChildGuard, Home, Met, SERVING, at_relay, met_process};
use crate::support::harness::{Test, skip, test};
use crate::support::program::{objects, stderr, stdout};
use crate::support::terminal::{Terminal, at_terminal};
use crate::support::vault::{network_of, signal, stop, vault_of};
use crate::support::{LONG, until, wait_for};
use nostr_sdk::prelude::*;
use npubbot::clock::Clock;
use npubbot::ledger::Ledger;
use rustix::process::Signal;
use rustix::termios::LocalModes;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

pub const TESTS: &[Test] = &[
    test!(where_nothing_runs_every_command_says_so_with_code_3),
    test!(status_has_the_promised_fields_and_names_nobody),
    test!(a_paused_search_finds_nothing_until_it_resumes),
    test!(a_pause_ends_when_its_time_is_over),
    test!(ended_jobs_are_listed_until_their_asker_is_erased),
    test!(a_wrong_configuration_changes_nothing_and_a_right_one_is_taken_up),
    test!(nobody_else_on_the_machine_opens_the_socket),
    test!(garbage_floods_and_slow_connections_do_not_keep_the_operator_out),
    test!(a_request_whose_sender_has_left_is_not_carried_out),
    test!(an_answer_that_is_not_this_versions_is_named_and_no_command_waits_for_ever).slow(),
    test!(top_shows_jobs_pauses_follows_the_terminals_size_and_restores_it),
];

fn where_nothing_runs_every_command_says_so_with_code_3() {
    let home = Home::new(&["ws://127.0.0.1:9".parse().unwrap()]);
    std::fs::create_dir(home.data()).unwrap();
    let ask_all = || {
        let commands = "stats,status,status --json,jobs,jobs show 1,jobs cancel 1,askers,deny npub1x,\
                        allow npub1x,pause,resume,top,reload";
        for arguments in commands.split(',') {
            let output = home.operate(&arguments.split(' ').collect::<Vec<_>>());
            assert_eq!(output.status.code(), Some(3), "{arguments:?}: {}", stderr(&output));
            assert!(stderr(&output).contains("no bot runs") && stdout(&output).is_empty(), "{}", stderr(&output));
        }
    };
    ask_all();
    // A socket that a killed bot has left.
    drop(std::os::unix::net::UnixListener::bind(home.data().join("control.sock")).unwrap());
    ask_all();
}

async fn status_has_the_promised_fields_and_names_nobody() {
    let Met { relay: _relay, home, bot, mut asker } = met_process("").await;
    let npub = bot.public_key.to_bech32().unwrap();
    assert!(asker.ask(LONG).await.contains("#1"));

    let status = objects(&home.operate(&["status", "--json"]));
    let [status] = &status[..] else { panic!("one object: {status:?}") };
    let fields: Vec<&str> = status.as_object().unwrap().keys().map(String::as_str).collect();
    let mut promised =
        ["version", "npub", "uptime_seconds", "rate", "devices", "relays", "open_jobs", "undelivered", "memory_bytes"];
    promised.sort_unstable();
    assert_eq!(fields, promised, "keys of serde_json's map are sorted");
    assert_eq!((&status["npub"], &status["open_jobs"]), (&npub.clone().into(), &1.into()));
    let (device, relays) = (&status["devices"][0], &status["relays"][0]);
    assert_eq!((&device["id"], &device["state"]), (&"cpu".into(), &"working".into()));
    assert!(device["rate"].as_f64().unwrap() > 0.0 && status["memory_bytes"].as_u64().unwrap() > 0, "{status}");
    assert_eq!(relays["state"], "connected", "{relays}");
    let person = asker.keys.public_key().to_bech32().unwrap();
    let text = status.to_string();
    assert!(!text.contains(&person) && !text.contains(LONG), "{text}");
    assert!(stdout(&home.operate(&["status"])).contains("1 open jobs"));

    let jobs = objects(&home.operate(&["jobs", "--json"]));
    assert_eq!(jobs.len(), 1, "an object a line");
    assert_eq!((&jobs[0]["job"], &jobs[0]["asker"]), (&1.into(), &person.into()));
    assert_eq!((&jobs[0]["patterns"][0], &jobs[0]["kind"]), (&LONG.into(), &"pool".into()));
    let shown = objects(&home.operate(&["jobs", "show", "1", "--json"]));
    assert!(shown.len() == 1 && shown[0]["patterns"] == jobs[0]["patterns"], "{shown:?}");
    let missing = home.operate(&["jobs", "show", "2"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("no job"), "{}", stderr(&missing));

    let cancelled = home.operate(&["jobs", "cancel", "1"]);
    assert!(cancelled.status.success() && stderr(&cancelled).contains("asker is told"), "{}", stderr(&cancelled));
    let notice = asker.next_text().await;
    assert!(notice.contains("#1 is given up"), "{notice}");
    assert!(objects(&home.operate(&["jobs", "--json"])).is_empty());
    assert_eq!(home.operate(&["jobs", "cancel", "1"]).status.code(), Some(2), "it is gone");
}

async fn a_paused_search_finds_nothing_until_it_resumes() {
    let Met { relay: _relay, home, bot, mut asker } = met_process("").await;
    let said = home.operate(&["pause", "--for", "3d"]);
    assert!(said.status.success() && stderr(&said).contains("3 days at most"), "{}", stderr(&said));
    assert!(asker.ask("cat").await.contains("#1"), "messages are answered");
    // Two more exchanges take longer than an easy job, so a search that is not paused would find
    // it.
    asker.ask("help").await;
    asker.ask("status").await;
    let status = &objects(&home.operate(&["status", "--json"]))[0];
    assert_eq!((&status["open_jobs"], &status["devices"][0]["state"]), (&1.into(), &"paused".into()));
    // A restart starts the devices again, but not the search.
    bot.kill();
    let _bot = home.spawn().await;
    let status = &objects(&home.operate(&["status", "--json"]))[0];
    assert_eq!((&status["open_jobs"], &status["devices"][0]["state"]), (&1.into(), &"paused".into()));
    assert!(home.operate(&["resume"]).status.success());
    asker.next_key().await.assert_starts_with("cat");
    let status = &objects(&home.operate(&["status", "--json"]))[0];
    assert_eq!(status["devices"][0]["state"], "working");
}

/// A nightly restart does not end a pause, and the pause ends by itself.
async fn a_pause_ends_when_its_time_is_over() {
    const NOW: u64 = 1_800_000_000;
    let (_relay, home) = at_relay("").await;
    let clock = Clock::at(NOW);
    home.vault();
    Ledger::open(&npubbot::ledger::folder(&home.data()), clock.clone()).unwrap().set_paused(NOW + 100).unwrap();
    let bot = home.start_at(clock.clone()).await;
    let is_paused = async || bot.service.monitor().metrics().await.unwrap().contains("npubbot_search_paused 1");
    clock.set(NOW + 99);
    assert!(is_paused().await);
    clock.set(NOW + 100);
    until("the search goes on", || async { (!is_paused().await).then_some(()) }).await;
}

async fn ended_jobs_are_listed_until_their_asker_is_erased() {
    let Met { relay: _relay, home, bot: _bot, mut asker } = met_process("").await;
    let npub = asker.keys.public_key().to_bech32().unwrap();
    asker.ask("dad").await;
    asker.next_key().await.assert_starts_with("dad");
    asker.ask(LONG).await;
    let all = ["jobs", "--all", "--asker", &npub, "--json"];
    let states = until("the key is delivered", || async {
        let states = objects(&home.operate(&all)).iter().map(|job| job["state"].clone()).collect::<Vec<_>>();
        states.contains(&"delivered".into()).then_some(states)
    })
    .await;
    assert_eq!(states, ["accepted", "delivered"], "the newest first");
    let today = objects(&home.operate(&["stats", "--json"])).pop().unwrap();
    assert_eq!((&today["jobs_accepted"], &today["jobs_delivered"]), (&2.into(), &1.into()), "{today}");
    assert!(stdout(&home.operate(&["stats"])).contains(today["date"].as_str().unwrap()));
    let shown = stdout(&home.operate(&["jobs", "show", "1"]));
    assert!(shown.starts_with("#1 delivered, accepted ") && shown.contains(" dad, npub1"), "{shown}");
    let in_file = |text: &str| {
        ["ledger.sqlite", "ledger.sqlite-wal"].iter().any(|name| {
            let bytes = std::fs::read(home.data().join("ledger").join(name)).unwrap_or_default();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        })
    };
    assert!(in_file(LONG));
    let said = stderr(&home.operate(&["erase", &npub]));
    assert!(said.contains("(1 open)") && said.contains("overwritten"), "{said}");
    assert!(!in_file(LONG), "its pages are overwritten");
    assert!(stdout(&home.operate(&all[..2])).contains("There is no job."));
    assert!(stderr(&home.operate(&["erase", &npub])).contains("nothing of them"));
}

async fn a_wrong_configuration_changes_nothing_and_a_right_one_is_taken_up() {
    let Met { relay, home, bot, mut asker } = met_process("").await;
    assert!(asker.ask(LONG).await.contains("#1"));
    let (right, vault) = (std::fs::read_to_string(home.config_file()).unwrap(), vault_of(bot.pid()));

    std::fs::write(home.config_file(), format!("{right}\n[bot]\nnmae = \"x\"\n")).unwrap();
    let line = right.lines().count() + 3;
    let wrong = home.operate(&["reload"]);
    assert_eq!(wrong.status.code(), Some(2));
    let said = stderr(&wrong);
    assert!(said.contains(&format!("line {line}: `nmae`: unknown field")) && said.contains("old"), "{said}");
    // SIGHUP reads the same file; the outcome is in the log.
    signal(bot.pid(), Signal::HUP);
    let twice = "the configuration is wrong, so the old one stays";
    home.logs(twice, 2).await;
    assert!(asker.ask("status").await.contains("#1"), "the bot goes on");

    // A valid file whose device does not exist: only the start finds that.
    let gone = right.replacen("device = \"cpu\"", "device = \"cuda:99\"", 1);
    assert_ne!(gone, right);
    std::fs::write(home.config_file(), &gone).unwrap();
    let refused = home.operate(&["reload"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("cuda:99") && stderr(&refused).contains("stays"), "{}", stderr(&refused));
    // A part that waits for the next start.
    std::fs::write(home.config_file(), format!("{right}\n[web]\nmetrics = \"127.0.0.1:1\"\n")).unwrap();
    let partly = home.operate(&["reload"]);
    assert!(partly.status.code() == Some(2) && stderr(&partly).contains("changes of [web]"), "{}", stderr(&partly));
    std::fs::write(home.config_file(), &right).unwrap();
    let taken = home.operate(&["reload"]);
    assert!(taken.status.success() && stderr(&taken).contains("has taken it up"), "{}", stderr(&taken));
    assert_eq!(vault_of(bot.pid()), vault, "its settings are the same");

    // A limit whose effect can be seen: one more job is too many now. And a profile: the vault signs
    // only what it was told at its start, so it is started again.
    let profile = || relay.events(&Filter::new().author(asker.bot).kind(Kind::Metadata)).pop();
    assert!(profile().is_some_and(|profile| !profile.content.contains("another name")));
    let changed = "[bot]\nname = \"another name\"\n[limits]\nopen_jobs_per_asker = 1\n";
    std::fs::write(home.config_file(), right.replacen("[limits]\n", changed, 1)).unwrap();
    let served = home.times_served();
    signal(bot.pid(), Signal::HUP);
    home.logs(SERVING, served + 1).await;
    wait_for("the new profile", || profile().is_some_and(|profile| profile.content.contains("another name"))).await;
    assert!(!home.log().contains("refuses to sign"), "{}", home.log());
    assert!(!asker.ask("qqqqqqqp").await.contains("#2"), "the new limit holds");
    assert_eq!(objects(&home.operate(&["jobs", "--json"])).len(), 1, "the job goes on");
}

async fn nobody_else_on_the_machine_opens_the_socket() {
    let (_relay, home) = at_relay("").await;
    let _bot = home.spawn().await;
    let socket = home.data().join("control.sock");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    // The socket stays closed to others even if the folders above it are open to everybody.
    for folder in [home.folder.path().to_owned(), home.data()] {
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o777)).unwrap();
    }
    if !rustix::process::geteuid().is_root() {
        skip("only root can try as another user");
    }
    let nobody = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "python3", "-c"])
        .arg("import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])")
        .arg(&socket)
        .output();
    let Ok(nobody) = nobody else { skip("there is no setpriv (util-linux) to try as another user") };
    assert!(stderr(&nobody).contains("Permission denied"), "{}", stderr(&nobody));
}

async fn garbage_floods_and_slow_connections_do_not_keep_the_operator_out() {
    let (_relay, home) = at_relay("").await;
    let _bot = home.spawn().await;
    let connect = || UnixStream::connect(home.data().join("control.sock")).unwrap();
    let answer = |request: &[u8]| {
        let mut stream = connect();
        // The bot may close the connection before it has read the whole request.
        let _ = stream.write_all(request);
        let mut line = String::new();
        let _ = BufReader::new(stream).read_line(&mut line);
        line
    };
    assert!(answer(b"GET / HTTP/1.1\n").contains("not a request"));
    assert!(answer(b"{\"do\":\"nsec\"}\n").contains("use the same program"));
    let long = answer(&[b'x'; 1 << 20]);
    assert!(long.is_empty() || long.contains("4096"), "a request of a mebibyte is not kept: {long}");
    // Every place is taken by a connection that says nothing. Each is closed after five seconds.
    let mut silent: Vec<UnixStream> = (0..8).map(|_| connect()).collect();
    let output = home.operate(&["status"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let mut rest = Vec::new();
    silent[0].read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty());
}

/// A request is not carried out if its sender has left before the bot reads it. For example, an
/// operator pauses a bot that hangs, is told that it does not answer, and starts over.
async fn a_request_whose_sender_has_left_is_not_carried_out() {
    let (_relay, home) = at_relay("").await;
    let bot = home.spawn().await;
    let network = network_of(bot.pid());
    let request = |text: &[u8]| {
        let mut stream = UnixStream::connect(home.data().join("control.sock")).unwrap();
        stream.write_all(text).unwrap();
        stream
    };
    stop(network).await;
    drop(request(b"{\"do\":\"pause\"}\n"));
    // An operator who sends no more but still reads has not left.
    let waiting = request(b"{\"do\":\"jobs\",\"command\":{\"show\":{\"job\":99}},\"all\":false}\n");
    waiting.shutdown(std::net::Shutdown::Write).unwrap();
    signal(network, Signal::CONT);
    let mut answer = String::new();
    BufReader::new(waiting).read_line(&mut answer).unwrap();
    assert!(answer.contains("no job has the number 99"), "{answer}");
    let status = &objects(&home.operate(&["status", "--json"]))[0];
    assert_eq!(status["devices"][0]["state"], "working");
    assert!(!home.log().contains("the operator paused"), "{}", home.log());
}

/// Starts a thread that listens in the place of a bot and answers each request with this text.
fn answers(home: &Home, text: &'static [u8]) {
    let _ = std::fs::remove_file(home.data().join("control.sock"));
    let listener = std::os::unix::net::UnixListener::bind(home.data().join("control.sock")).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = BufReader::new(stream.try_clone().unwrap()).read_line(&mut String::new());
            let _ = stream.write_all(text);
        }
    });
}

fn an_answer_that_is_not_this_versions_is_named_and_no_command_waits_for_ever() {
    let home = Home::new(&["ws://127.0.0.1:9".parse().unwrap()]);
    std::fs::create_dir(home.data()).unwrap();
    let cases: [(&[u8], &str); 6] = [
        (b"", "it closed the connection"),
        (b"hello\n", "another version"),
        (b"{\"later\":5}\n", "another version"),
        (b"{\"status\":{\"version\":\"9\"}}\n", "another version"),
        (b"{\"refused\":\"use npubbot 9\"}\n\"end\"\n", "use npubbot 9"),
        (b"\xff\xff\n", "did not answer"),
    ];
    for (text, expected) in cases {
        answers(&home, text);
        // Another program, or another flag, is for a person to choose.
        let is_passing = ["it closed the connection", "did not answer"].contains(&expected);
        for command in if is_passing { &["status"][..] } else { &["status", "top"] } {
            let output = home.operate(&[command]);
            let code = if is_passing { 1 } else { 2 };
            assert_eq!(output.status.code(), Some(code), "{command}: {}", stderr(&output));
            assert!(stderr(&output).contains(expected), "{command}: {}", stderr(&output));
        }
    }
    // The queue of the socket is full, as after thousands of commands that a hanging bot has not
    // answered.
    std::fs::remove_file(home.data().join("control.sock")).unwrap();
    let path = rustix::net::SocketAddrUnix::new(home.data().join("control.sock")).unwrap();
    let new = || rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM, None).unwrap();
    let listener = new();
    rustix::net::bind(&listener, &path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let waiting = new();
    rustix::net::connect(&waiting, &path).unwrap();
    let output = home.operate(&["status"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("takes no more connections"), "{}", stderr(&output));
}

/// Starts `npubbot top` for a bot, at a terminal.
fn top(home: &Home) -> (Terminal, ChildGuard) {
    let (terminal, theirs) = Terminal::new();
    let mut command = home.program(&["top"]);
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1").stdout(Stdio::from(theirs.try_clone().unwrap()));
    let top = ChildGuard(at_terminal(&mut command, theirs).spawn().unwrap());
    (terminal, top)
}

async fn top_shows_jobs_pauses_follows_the_terminals_size_and_restores_it() {
    let Met { relay: _relay, home, bot: _bot, mut asker } = met_process("").await;
    assert!(asker.ask(LONG).await.contains("#1"));
    // Later frames write only what changed, so the first one must show a device and the job.
    until("the search runs", || async {
        let status = &objects(&home.operate(&["status", "--json"]))[0];
        let jobs = objects(&home.operate(&["jobs", "--json"]));
        (status["devices"][0]["state"] == "working" && jobs.len() == 1).then_some(())
    })
    .await;
    let piped = home.operate(&["top"]);
    assert!(piped.status.code() == Some(2) && stderr(&piped).contains("needs a terminal"), "{}", stderr(&piped));
    let (mut terminal, mut top) = top(&home);
    for text in ["\x1b[?1049h", "searching", "Devices", LONG, "quit"] {
        terminal.draws(text).await;
    }
    terminal.types("p");
    terminal.draws("paused").await;
    terminal.resize(120, 36);
    terminal.draws(LONG).await;
    terminal.types("\x1b[B");
    terminal.resize(60, 20);
    terminal.draws("quit").await;
    // A key at the moment of a resize counts, also while the one before is drawn.
    (61..79).for_each(|columns| terminal.resize(columns, 20));
    terminal.types("q");
    terminal.draws("\x1b[?1049l").await;
    assert!(top.ended().await.success());
    assert!(terminal.has(LocalModes::ICANON), "keys are read by lines again");
    until("the search is paused", || async {
        let status = &objects(&home.operate(&["status", "--json"]))[0];
        (status["devices"][0]["state"] == "paused").then_some(())
    })
    .await;
}
