//! The memory of the process that talks to the network, and the files and environment that the
//! vault process inherits.

use crate::support::bot::{Home, Met, met_process};
use crate::support::harness::{Test, skip, test};
use crate::support::leaks::{Needle, Pieces, Search, Secret, forms_of};
use crate::support::program;
use crate::support::relay::TestRelay;
use crate::support::vault::{about, memory, next_vault};
use nostr_sdk::{Keys, ToBech32};
use secp256k1::SecretKey;
use std::fs;

pub const TESTS: &[Test] = &[
    test!(the_network_process_has_no_identity_and_no_delivered_key),
    test!(the_vault_inherits_nothing_but_its_socket),
    test!(the_hidden_command_serves_a_bot_only),
];

async fn the_network_process_has_no_identity_and_no_delivered_key() {
    let Met { relay: _relay, home, bot: process, mut asker } = met_process("").await;
    asker.send("q").await;
    let text = asker.next_result().await;
    let key = Keys::parse(text.lines().find(|line| line.starts_with("nsec1")).unwrap()).unwrap();
    let (bot, vault) = (process.pid(), next_vault(process.pid(), None).await);
    let regions = memory(bot).expect("the bot's memory can be read by whoever started it");
    let identity = home.keys();
    let secrets = [
        Secret::new("the identity", SecretKey::from_slice(identity.secret_key().as_secret_bytes()).unwrap()),
        Secret::new("a delivered key", SecretKey::from_slice(key.secret_key().as_secret_bytes()).unwrap()),
    ];
    let pieces = Pieces::of(&secrets);
    for region in &regions {
        let found = pieces.look(&region.bytes);
        assert!(found.is_empty(), "{:?} in the network process", found[0]);
    }
    let texts: Vec<Needle> =
        [&identity, &key].iter().flat_map(|keys| forms_of(&keys.secret_key().to_bech32().unwrap())).collect();
    assert_eq!(Search::new(&texts).process(bot), Vec::<String>::new());
    // The positive controls: the scan finds the public key that the process always holds, and the
    // identity in the vault.
    let public = [Needle::new("public key", process.public_key.as_bytes())];
    assert!(!Search::new(&public).process(bot).is_empty(), "the scan finds what is there");
    let Ok(regions) = memory(vault) else { skip("the vault's memory cannot be read, not even for the control") };
    assert!(
        regions.iter().any(|region| pieces.look(&region.bytes).iter().any(|found| found.secret == 0)),
        "the identity"
    );
}

async fn the_vault_inherits_nothing_but_its_socket() {
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    let process = home.spawn_logged().await;
    let vault = next_vault(process.pid(), None).await;
    let Ok(environment) = fs::read(about(vault, "environ")) else { skip("only root can look at the vault") };
    assert_eq!(environment, b"", "the environment");
    let mut files: Vec<String> = fs::read_dir(about(vault, "fd"))
        .unwrap()
        .filter_map(|file| fs::read_link(file.unwrap().path()).ok())
        .map(|path| path.display().to_string().split(':').next().unwrap_or_default().to_owned())
        .collect();
    files.sort_unstable();
    // The socket thrice: standard input, and handles for reading and writing. The bot reads the pipe
    // of standard error.
    assert_eq!(files, ["/dev/null", "pipe", "socket", "socket", "socket"]);
}

fn the_hidden_command_serves_a_bot_only() {
    let output = program::run(&["vault"]);
    let said = program::stderr(&output);
    assert!(!output.status.success() && said.contains("npubbot serve"), "{said}");
    let help = program::run(&["--help"]);
    assert!(!program::stdout(&help).contains("vault"), "it is no command for people");
}
