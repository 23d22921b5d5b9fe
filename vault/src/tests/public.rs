//! The public side of the vault: its debug output, and its signatures.

use super::*;
use nostr::{EventBuilder, Kind, NostrSigner, Timestamp, UnsignedEvent};

fn unsigned(by: nostr::PublicKey, kind: u16) -> UnsignedEvent {
    UnsignedEvent::new(by, Timestamp::from_secs(1), Kind::from(kind), [], "content")
}

#[tokio::test]
async fn the_signer_signs_what_the_bot_publishes_and_nothing_else() {
    let vault = vault();
    let signer = vault.signer();
    assert_eq!(signer.get_public_key().await.unwrap(), vault.public_key());
    for kind in [0, 1, 5, 10002, 10044, 10050, 22242, 30315, 31989, 31990] {
        let event = signer.sign_event(unsigned(vault.public_key(), kind)).await.unwrap();
        event.verify().unwrap();
        assert_eq!((event.pubkey, event.kind), (vault.public_key(), Kind::from(kind)));
    }
    for kind in [3, 4, 7, 13, 14, 1059, 62, 10000, 27235, 65535] {
        assert!(signer.sign_event(unsigned(vault.public_key(), kind)).await.is_err(), "{kind}");
    }
    let builder = EventBuilder::text_note("one public note");
    builder.sign(&signer).await.unwrap().verify().unwrap();
}

#[tokio::test]
async fn the_signer_refuses_other_authors_and_wrong_ids() {
    let vault = vault();
    let signer = vault.signer();
    assert!(signer.sign_event(unsigned(Keys::generate().public_key(), 1)).await.is_err());
    let mut lying = unsigned(vault.public_key(), 1);
    lying.ensure_id();
    lying.content.push('!');
    assert!(signer.sign_event(lying).await.is_err());
}

#[tokio::test]
async fn the_signer_neither_encrypts_nor_decrypts() {
    let signer = vault().signer();
    let other = Keys::generate().public_key();
    assert!(signer.nip04_encrypt(&other, "x").await.is_err());
    assert!(signer.nip04_decrypt(&other, "x").await.is_err());
    assert!(signer.nip44_encrypt(&other, "x").await.is_err());
    assert!(signer.nip44_decrypt(&other, "x").await.is_err());
}

#[test]
fn debug_output_holds_no_secret() {
    let vault = vault();
    let bot = secret::Signing::from_nsec(vault_nsec(&vault).trim()).unwrap();
    let shown = format!("{vault:?} {:?} {:?}", vault.signer(), vault.open_start().unwrap());
    let secret = bot.keys().secret_key();
    assert!(!shown.contains("nsec1") && !shown.contains(&secret.to_secret_hex()));
    assert!(!shown.contains(&format!("{:?}", secret.to_secret_bytes())));
}

fn vault_nsec(vault: &Vault) -> String {
    vault.bot_for_tests().nsec_line().unwrap().as_str().unwrap().to_owned()
}

#[test]
fn a_secret_text_never_grows() {
    use std::io::Write;
    let mut text = secret::SecretText::with_capacity(8);
    text.write_all(b"12345678").unwrap();
    let place = text.as_bytes().as_ptr();
    assert!(text.write_all(b"9").is_err());
    assert_eq!((text.as_bytes(), text.as_bytes().as_ptr()), (&b"12345678"[..], place));
}
