//! Mistakes in a configuration, and the error messages that operators read.

use super::file::SHIPPED;
use super::{Choices, Config, FleetConfig};
use crate::search::{DeviceChoice, DeviceId, Preference};
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
    assert_eq!((shipped.network.proxy, defaults.network.proxy), (None, None));
    assert_eq!(defaults.web.listen, None, "no page is served unless the operator asks for it");
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
fn values_of_the_file_replace_the_defaults() {
    let text = format!(
        "{RELAY}[search]\ndevice = \"cuda:1\"\nthreads = 3\npolite = true\nprefer = \"energy\"\n\
         schedule = \"22:00-07:00\"\ntime_zone = \"UTC\"\npause_on_battery = true\nshare_percent = 80\n\
         [[search.caps]]\ndevice = \"cuda:1\"\nwatts = 250\npause_at_celsius = 75\n\
         [limits]\nlongest_expected_time = \"60 s\"\ngive_up_after = \"90 s\"\n"
    );
    let Config { search, limits, .. } = Config::parse(&text, "").unwrap();
    assert_eq!((search.devices, search.threads), (DeviceChoice::CudaOrdinal(1), Some(3)));
    assert!(search.polite && search.prefer == Preference::Energy);
    assert_eq!(limits.give_up_after, Duration::from_secs(90));
    let (restraints, hours) = (&search.restraints, search.restraints.hours.clone().unwrap());
    assert!(hours.contain(0) && !hours.contain(12 * 3600) && restraints.pause_on_battery);
    let (all, one) = (restraints.caps_of(DeviceId::Cuda(0)), restraints.caps_of(DeviceId::Cuda(1)));
    assert_eq!((all.share, all.celsius, all.watts), (Some(0.8), None, None));
    assert_eq!((one.share, one.celsius, one.watts), (Some(0.8), Some(75.0), Some(250.0)));
}

/// Every mistake is named with its line, in words for people, and with what is allowed.
#[test]
fn every_mistake_is_named_with_its_line_and_what_is_allowed() {
    let server = "[fleet]\nserver = \"tls://nats.example:4222\"\n[network]\nproxy = \"127.0.0.1:9050\"\n";
    // What follows the relay of lines 1 to 3, the line of the mistake, and the words after it.
    let cases = [
        ("[bot]\nnmae = \"x\"\n", 5, "`nmae`: unknown field `nmae`, expected one of `name`, `about`, `picture`"),
        ("[bott]\n", 4, "unknown field `bott`, expected one of `relays`, "),
        ("[bot]\nlive_status = True\n", 5, "`live_status`: "),
        ("[bot]\nlive_status = \"yes\"\n", 5, "`live_status`: invalid type: string \"yes\", expected a boolean"),
        ("[bot]\nname = hank\n", 5, "`name`: "),
        ("[bot]\nname = 7\n", 5, "`name` is 7; allowed is a text, in quotation marks"),
        ("[bot]\nname = \"a\\u0007\"\n", 5, "`name` has control characters"),
        ("[bot]\nnip05 = \"alice\"\n", 5, "`nip05` is \"alice\"; allowed is a name and a domain"),
        (
            "[bot]\npicture = \"javascript:alert(1)\"\n",
            5,
            "`picture` is \"javascript:alert(1)\"; allowed is the address",
        ),
        ("[limits]\njobs_per_day = \"many\"\n", 5, "`jobs_per_day` is \"many\"; allowed is a whole number from 1 to"),
        ("[limits]\njobs_per_day = 0\n", 5, "`jobs_per_day` is 0; allowed is a whole number from 1 to 1000000"),
        ("[limits]\ngive_up_after = 30\n", 5, "`give_up_after` is 30; allowed is a whole number and s, min, h or days"),
        (
            "[limits]\ngive_up_after = \"soon\"\n",
            5,
            "`give_up_after` is \"soon\"; allowed is a whole number and s, min",
        ),
        ("[limits]\ngive_up_after = \"2 h\"\n", 5, "`give_up_after` (30 days unless set) is less than"),
        ("[limits]\nlongest_expected_time = \"31 days\"\n", 4, "`give_up_after` (30 days unless set) is less than"),
        ("[bot]\nanswers_expire_after = \"1 s\"\n", 5, "`answers_expire_after` is 1 second; the minimum is 1 day"),
        ("[bot]\ntry_relays_every = \"1 s\"\n", 5, "`try_relays_every` is 1 second; the minimum is 1 min"),
        ("[web]\nlisten = \"8080\"\n", 5, "`listen` is \"8080\"; allowed is an address and a port, like"),
        ("[web]\nlisten = \"[::1]:80\"\nmetrics = \"[::1]:80\"\n", 6, "`metrics` is [::1]:80, and so is `listen`"),
        ("[web]\npublic_url = \"bot.example\"\n", 5, "`public_url` is \"bot.example\"; allowed is the page's address"),
        (server, 5, "`server` of [fleet] would be reached without the `proxy`"),
        ("[search]\ndevice = \"gpu\"\n", 5, "`device`: `gpu` is not a device; say `cpu`, `cuda`, `cuda:N` or `all`"),
        ("[search]\nthreads = 1.0\n", 5, "`threads` is 1.0; allowed is a whole number from 1 to 1024"),
        ("[search]\nthreads = \"1\"\n", 5, "`threads` is \"1\"; allowed is a whole number from 1 to 1024"),
        ("[search]\ngpu_memory = \"half\"\n", 5, "`gpu_memory` is \"half\"; allowed is a whole number and MB or GB"),
        ("[search]\nschedule = \"22-7\"\n", 5, "`schedule` is \"22-7\"; allowed are spans like \"22:00-07:00\""),
        ("[search]\ntime_zone = \"Berlin\"\n", 5, "`time_zone`: \"Berlin\" is no time zone; allowed is a name like"),
        ("[search]\nshare_percent = 0\n", 5, "`share_percent` is 0; allowed is a whole number from 1 to 100"),
        ("[[search.caps]]\ndevice = \"all\"\n", 5, "`device`: `all` is no single device; say `cpu` or `cuda:N`"),
        ("[[search.caps]]\ndevice = \"cpu\"\nwatts = 20\n", 4, "`watts` is for GPUs; `share_percent` limits"),
        (RELAY, 5, "the relay wss://relay.example is listed twice; give it all its roles at once"),
        (
            "[[relays]]\nurl = \"wss://user:secret@b.example\"\nroles = [\"status\"]\n",
            5,
            "`url` has a user, a password",
        ),
        (
            "[[relays]]\nurl = \"https://b.example\"\nroles = [\"status\"]\n",
            5,
            "`url` is \"https://b.example\"; allowed is",
        ),
        (
            "[[relays]]\nurl = \"wss://b.example\"\nroles = [\"inbx\"]\n",
            6,
            "`roles`: unknown variant `inbx`, expected one of `inbox`",
        ),
        ("[[relays]]\nurl = \"wss://b.example\"\nroles = []\n", 6, "`roles` is empty; allowed are \"inbox\""),
        ("[[relays]]\nurl = \"wss://b.example\"\n", 4, "missing field `roles`"),
    ];
    for (more, line, what) in cases {
        let error = error(&format!("{RELAY}{more}"));
        assert!(error.starts_with(&format!("relays.toml, line {line}: {what}")), "{more}{error}");
        assert!(!error.contains("secret"), "{error}");
    }
    let inline = error("relays = [\"wss://nos.lol\"]\n");
    assert!(inline.starts_with("relays.toml, line 1: `relays`: invalid type: string"), "{inline}");
    assert!(error(&RELAY.replace("inbox", "status")).contains("no relay has the role \"inbox\""));
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
    let server = |address: &str| FleetConfig { server: format!("tls://{address}"), credentials: None };
    for near in ["localhost", "localhost:4222", "127.0.0.1:4222", "192.168.1.7", "10.0.0.1:1", "[::1]:4222"] {
        assert!(server(near).is_near(), "{near}");
    }
    for far in ["nats.example:4222", "1.1.1.1", "8.8.8.8:4222", "[2606:4700::1]:4222", "localhost.example:1", ""] {
        assert!(!server(far).is_near(), "{far}");
    }
}
