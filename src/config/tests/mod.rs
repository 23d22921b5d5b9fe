//! Mistakes in a configuration, and the error messages that operators read.

use super::edit::SHIPPED;
use super::{Choices, Config, FleetConfig};
use crate::search::{DeviceChoice, DeviceId};
use std::time::Duration;

const RELAY: &str = "[[relays]]\nurl = \"wss://relay.example\"\nroles = [\"inbox\"]\n";

fn error(text: &str) -> String {
    Config::parse(text, "relays.toml").unwrap_err().to_string()
}

#[test]
fn the_shipped_file_holds_the_defaults() {
    let shipped = Config::embedded_default().unwrap();
    assert!(shipped.relays.iter().filter(|relay| relay.inbox).count() <= 3, "NIP-17 wants one to three");
    assert!(shipped.relays.iter().any(|relay| relay.status) && shipped.relays.iter().any(|relay| relay.discovery));
    let defaults = Config::parse(RELAY, "").unwrap();
    assert_eq!(format!("{:?}", shipped.limits), format!("{:?}", defaults.limits));
    assert_eq!(format!("{:?}", shipped.bot), format!("{:?}", defaults.bot));
    assert_eq!(shipped.search.restraints.caps_of(DeviceId::Cpu).share, Some(1.0), "the default of `share_percent`");
    let mut search = shipped.search.clone();
    search.restraints.caps.share = None;
    assert_eq!(format!("{search:?}"), format!("{:?}", defaults.search));
    assert_eq!(format!("{:?}", shipped.web), format!("{:?}", defaults.web));
    assert_eq!(defaults.web.metrics, None);
    assert_eq!((shipped.proxy, defaults.proxy), (None, None));
    assert_eq!(defaults.web.listen, None, "no page is served unless the operator asks for it");
    for key in [
        "open_jobs_per_asker",
        "longest_expected_time",
        "device",
        "threads",
        "cpu_kernel",
        "polite",
        "gpu_memory",
        "schedule",
        "time_zone",
        "pause_on_battery",
        "share_percent",
        "pause_at_celsius",
        "[[search.caps]]",
        "watts",
        "nip05",
        "picture",
        "visit_askers_relays",
        "keep_finished",
        "listen",
        "public_url",
        "metrics",
        "proxy",
    ] {
        assert!(SHIPPED.contains(key), "{key} is explained in the file");
    }
}

#[test]
fn values_of_the_file_replace_the_defaults() {
    let text = format!(
        "{RELAY}[search]\ndevice = \"cuda:1\"\nthreads = 3\npolite = true\n[limits]\nlongest_expected_time = \"60 s\"\ngive_up_after = \"90 s\"\n"
    );
    let config = Config::parse(&text, "").unwrap();
    assert_eq!(config.search.devices, DeviceChoice::CudaOrdinal(1));
    assert_eq!(config.search.threads, Some(3));
    assert!(config.search.polite && !Config::parse(RELAY, "").unwrap().search.polite);
    assert_eq!(config.limits.give_up_after, Duration::from_secs(90));
}

#[test]
fn memory_of_a_gpu_is_a_number_of_megabytes_or_gigabytes_within_its_bounds() {
    let parse = |text: &str| Config::parse(&format!("{RELAY}[search]\ngpu_memory = \"{text}\"\n"), "");
    let bytes = |text: &str| parse(text).unwrap().search.gpu_memory;
    assert_eq!(Config::parse(RELAY, "").unwrap().search.gpu_memory, None);
    assert_eq!(bytes(""), None);
    for (text, expected) in
        [("64 MB", 64_000_000), ("1 GB", 1_000_000_000), ("24GB", 24_000_000_000), ("1024 GB", 1_024_000_000_000)]
    {
        assert_eq!(bytes(text), Some(expected), "{text}");
    }
    for text in ["63 MB", "0 GB", "1025 GB", "-1 GB", "1.5 GB", "1", "GB", "1 TB", "1 gb", "18446744073709551615 GB"] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn hours_and_caps_of_the_file_are_those_of_the_devices() {
    let text = format!(
        "{RELAY}[search]\nschedule = \"22:00-07:00\"\ntime_zone = \"UTC\"\npause_on_battery = true\nshare_percent = 80\n\
         [[search.caps]]\ndevice = \"cuda:1\"\nwatts = 250\npause_at_celsius = 75\n"
    );
    let restraints = Config::parse(&text, "").unwrap().search.restraints;
    let hours = restraints.hours.clone().unwrap();
    assert!(hours.contain(0) && !hours.contain(12 * 3600) && restraints.pause_on_battery);
    let (all, one) = (restraints.caps_of(DeviceId::Cuda(0)), restraints.caps_of(DeviceId::Cuda(1)));
    assert_eq!((all.share, all.celsius, all.watts), (Some(0.8), None, None));
    assert_eq!((one.share, one.celsius, one.watts), (Some(0.8), Some(75.0), Some(250.0)));
}

#[test]
fn every_mistake_is_named_with_its_line_and_what_is_allowed() {
    let with = |more: &str| error(&format!("{RELAY}{more}"));
    insta::assert_snapshot!(with("[bot]\nnmae = \"x\"\n"), @"relays.toml, line 5: unknown field `nmae`, expected one of `name`, `about`, `picture`, `nip05`, `live_status`, `daily_note`, `try_relays_every`, `answer_without_relay_list`, `visit_askers_relays`, `answers_expire_after`, `keep_finished`");
    insta::assert_snapshot!(with("[limits]\njobs_per_day = \"many\"\n"), @r#"relays.toml, line 5: invalid type: string "many", expected i64"#);
    insta::assert_snapshot!(with("[limits]\njobs_per_day = 0\n"), @"relays.toml, line 5: `jobs_per_day` is 0; allowed is 1 to 1000000");
    insta::assert_snapshot!(with("[limits]\ngive_up_after = \"soon\"\n"), @r#"relays.toml, line 5: `give_up_after` is "soon"; allowed is a whole number and s, min, h or days, like "12 h""#);
    insta::assert_snapshot!(with("[web]\nlisten = \"8080\"\n"), @r#"relays.toml, line 5: `listen` is "8080"; allowed is an address and a port, like "127.0.0.1:8080""#);
    insta::assert_snapshot!(with("[web]\nmetrics = \"yes\"\n"), @r#"relays.toml, line 5: `metrics` is "yes"; allowed is an address and a port, like "127.0.0.1:9477""#);
    insta::assert_snapshot!(with("[web]\nlisten = \"[::1]:80\"\nmetrics = \"[::1]:80\"\n"), @"relays.toml, line 6: `metrics` is [::1]:80, and so is `listen`; each needs a port of its own");
    insta::assert_snapshot!(with("[network]\nproxy = \"socks5://tor\"\n"), @r#"relays.toml, line 5: `proxy` is "socks5://tor"; allowed is an address and a port, like "127.0.0.1:9050""#);
    let server = |address: &str| format!("[fleet]\nserver = \"{address}\"\n[network]\nproxy = \"127.0.0.1:9050\"\n");
    insta::assert_snapshot!(with(&server("tls://nats.example:4222")), @r#"relays.toml, line 5: `server` of [fleet] would be reached without the `proxy` of [network]; with a proxy, give an address of this machine or its network, like "tls://127.0.0.1:4222""#);
    insta::assert_snapshot!(with("[web]\npublic_url = \"bot.example\"\n"), @r#"relays.toml, line 5: `public_url` is "bot.example"; allowed is the page's address without #, like "https://bot.example/""#);
    insta::assert_snapshot!(with("[bot]\nanswers_expire_after = \"1 s\"\n"), @r#"relays.toml, line 5: `answers_expire_after` is "1 s", and a key could expire before its asker looks; write "1 day" or more (it is "30 days" if you say nothing)"#);
    insta::assert_snapshot!(with("[bot]\nkeep_finished = \"12 h\"\n"), @r#"relays.toml, line 5: `keep_finished` is "12 h", and the jobs of the last day count for `jobs_per_day`; write "1 day" or more (it is "90 days" if you say nothing)"#);
    insta::assert_snapshot!(with("[bot]\ntry_relays_every = \"1 s\"\n"), @r#"relays.toml, line 5: `try_relays_every` is "1 s", and relays would turn away who writes that often; write "1 min" or more (it is "15 min" if you say nothing)"#);
    insta::assert_snapshot!(with("[limits]\nlongest_expected_time = \"2 days\"\ngive_up_after = \"1 day\"\n"), @r#"relays.toml, line 6: `give_up_after` ("1 day") is less than `longest_expected_time` ("2 days"), so jobs would be given up before they are expected to end; make `give_up_after` as long at least, or `longest_expected_time` shorter"#);
    insta::assert_snapshot!(with("[limits]\ngive_up_after = \"2 h\"\n"), @r#"relays.toml, line 5: `give_up_after` ("2 h") is less than `longest_expected_time` ("24 h" if you say nothing), so jobs would be given up before they are expected to end; make `give_up_after` as long at least, or `longest_expected_time` shorter"#);
    insta::assert_snapshot!(with("[limits]\nlongest_expected_time = \"31 days\"\n"), @r#"relays.toml, line 5: `give_up_after` ("30 days" if you say nothing) is less than `longest_expected_time` ("31 days"), so jobs would be given up before they are expected to end; make `give_up_after` as long at least, or `longest_expected_time` shorter"#);
    insta::assert_snapshot!(with("[search]\ndevice = \"gpu\"\n"), @"relays.toml, line 5: `device`: `gpu` is no device; say `cpu`, `cuda`, `cuda:N` or `all`");
    insta::assert_snapshot!(with("[search]\ngpu_memory = \"half\"\n"), @r#"relays.toml, line 5: `gpu_memory` is "half"; allowed is a whole number and MB or GB, from "64 MB" to "1024 GB""#);
    insta::assert_snapshot!(with("[search]\nschedule = \"22-7\"\n"), @r#"relays.toml, line 5: `schedule` is "22-7"; allowed are spans like "22:00-07:00" or "07:00-09:30, 22:00-24:00""#);
    insta::assert_snapshot!(with("[search]\ntime_zone = \"Berlin\"\n"), @r#"relays.toml, line 5: `time_zone`: "Berlin" is no time zone; allowed is a name like "Europe/Berlin" or "UTC""#);
    insta::assert_snapshot!(with("[search]\nshare_percent = 0\n"), @"relays.toml, line 5: `share_percent` is 0; allowed is 1 to 100");
    insta::assert_snapshot!(with("[search]\npause_at_celsius = 20\n"), @"relays.toml, line 5: `pause_at_celsius` is 20; allowed is 30 to 120");
    insta::assert_snapshot!(with("[[search.caps]]\ndevice = \"all\"\n"), @"relays.toml, line 5: `device`: `all` is no single device; say `cpu` or `cuda:N`");
    insta::assert_snapshot!(with("[[search.caps]]\ndevice = \"cpu\"\nwatts = 20\n"), @"relays.toml, line 6: `watts` is for GPUs; `share_percent` limits the time of a CPU");
    insta::assert_snapshot!(with("[[search.caps]]\ndevice = \"cuda:0\"\n[[search.caps]]\ndevice = \"cuda:0\"\n"), @"relays.toml, line 7: cuda:0 has two [[search.caps]]; give it one");
    insta::assert_snapshot!(with(RELAY), @"relays.toml, line 5: the relay wss://relay.example is listed twice; give it all its roles at once");
    insta::assert_snapshot!(error(&RELAY.replace("wss", "https")), @r#"relays.toml, line 2: "https://relay.example" is no relay; allowed is an address like "wss://relay.example""#);
    insta::assert_snapshot!(error(&RELAY.replace("inbox", "inbx")), @r#"relays.toml, line 3: `inbx` is no role; allowed are "inbox", "status", "discovery""#);
    insta::assert_snapshot!(error(&RELAY.replace("\"inbox\"", "")), @r#"relays.toml, line 3: this relay has no role; allowed are "inbox", "status", "discovery""#);
    insta::assert_snapshot!(error(&RELAY.replace("inbox", "status")), @r#"relays.toml, line 1: no relay has the role "inbox", so nobody could reach the bot; give it to one [[relays]] at least"#);
    assert!(error("[[relays]\n").starts_with("relays.toml, line 1: "));
    assert!(error("").contains("no relay has the role"));
}

#[test]
fn a_file_that_is_missing_or_no_text_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("relays.toml");
    assert!(Config::load(&file).unwrap_err().to_string().contains("`npubbot init` writes one"));
    // The default file that we write can be read back, and an existing file is never overwritten.
    assert!(Config::write_new(&file, &Choices::default()).unwrap());
    assert_eq!(format!("{:?}", Config::load(&file).unwrap()), format!("{:?}", Config::embedded_default().unwrap()));
    // A file that an editor of Windows has saved can be read too.
    std::fs::write(&file, format!("\u{feff}{}", SHIPPED.replace('\n', "\r\n"))).unwrap();
    assert_eq!(format!("{:?}", Config::load(&file).unwrap()), format!("{:?}", Config::embedded_default().unwrap()));
    std::fs::write(&file, b"[bot]\nname = \"\xff\"\n").unwrap();
    let error = Config::load(&file).unwrap_err().to_string();
    assert!(error.ends_with("relays.toml, line 2: this is not UTF-8 text; save the file as UTF-8"), "{error}");
    assert!(!Config::write_new(&file, &Choices::default()).unwrap());
    assert!(std::fs::read(&file).unwrap().starts_with(b"[bot]"));
}

#[test]
fn behind_a_proxy_the_server_of_workers_is_nearby() {
    let server = |address: &str| FleetConfig { server: format!("tls://{address}"), credentials: None, decoys: 16 };
    for near in ["localhost", "localhost:4222", "127.0.0.1:4222", "192.168.1.7", "10.0.0.1:1", "[::1]:4222"] {
        assert!(server(near).is_near(), "{near}");
    }
    for far in ["nats.example:4222", "1.1.1.1", "8.8.8.8:4222", "[2606:4700::1]:4222", "localhost.example:1", ""] {
        assert!(!server(far).is_near(), "{far}");
    }
}
