//! Tickets: only the requested key is sealed, and only to its asker.

use super::decoupled::{announced_at, wrap};
use super::wraps::Forger;
use super::*;
use crate::key::HalfPoint;
use crate::message::{EncryptionKey, Ticket};
use crate::pattern::Family;
use nostr::nips::nip44;
use nostr::{Timestamp, ToBech32, UnsignedEvent};
use request::Request;

/// Date of the messages of these tests, Unix seconds.
const DATE: u64 = 1_800_000_000;

/// A reader that understands a half point, patterns and `best`. Any other text asks for no key.
fn reader(rumor: &Rumor) -> Option<Asked> {
    let half = rumor.content.split(' ').find_map(|word| word.parse().ok());
    let words = rumor.content.split(' ').filter(|word| word.parse::<HalfPoint>().is_err());
    let wanted = match rumor.content.as_str() {
        "best" => Wanted::Rarest(Family::Zeros),
        _ => Wanted::Patterns(words.map(|word| word.parse().ok()).collect::<Option<_>>()?),
    };
    Some(Asked { wanted, half })
}

fn forger() -> Forger {
    let forger = Forger::new();
    Forger { vault: forger.vault.with_reader(reader), ..forger }
}

impl Forger {
    /// A message of the author with this text.
    fn asking(&self, text: &str) -> UnsignedEvent {
        let mut rumor = UnsignedEvent { content: text.to_owned(), id: None, ..self.rumor() };
        rumor.ensure_id();
        rumor
    }

    /// The ticket for this text.
    fn ticket(&self, text: &str) -> Ticket {
        self.open(&self.with_rumor(self.asking(text).as_json())).unwrap().ticket.unwrap()
    }
}

/// A start point, and a hit at it whose npub matches `pattern`.
fn found(vault: &Vault, pattern: &str, rng: &mut StdRng) -> (StartId, VerifiedHit) {
    let (start, point) = vault.open_start().unwrap();
    let pattern: crate::pattern::Pattern = pattern.parse().unwrap();
    let hit = std::iter::repeat_with(|| hit(point, rng)).find(|hit| pattern.matches(&hit.npub())).unwrap();
    (start, hit)
}

/// The npub of the nsec in `wrap`; `None` if `keys` do not open the wrap.
fn opened_by(keys: &Keys, wrap: &GiftWrap) -> Option<Npub> {
    last_message(keys, wrap).map(|nsec| npub_of(&nsec))
}

/// The message that is copied; `None` if `keys` do not open it.
fn last_message(keys: &Keys, wrap: &GiftWrap) -> Option<String> {
    let decrypt = |event: &Event| nip44::decrypt(keys.secret_key(), &event.pubkey, &event.content).ok();
    let seal = Event::from_json(decrypt(&event(wrap))?).unwrap();
    Some(UnsignedEvent::from_json(decrypt(&seal)?.trim_end()).unwrap().content)
}

#[test]
fn a_key_goes_to_the_author_of_its_ticket_whoever_the_message_names() {
    let (forger, mut rng, thief) = (forger(), seeded(), Keys::generate());
    let (start, hit) = found(&forger.vault, "q", &mut rng);
    let astray = OutgoingMessage { encryption_key: Some(EncryptionKey(asker(&thief).0)), ..message(&thief) };
    let wrap = forger.vault.redeem(start, &hit, &forger.ticket("p q"), None, &astray).unwrap();
    assert_eq!((wrap.to, opened_by(&forger.author, &wrap)), (asker(&forger.author), Some(hit.npub())));
    assert_eq!(opened_by(&thief, &wrap), None);
}

#[test]
fn a_ticket_with_any_bit_altered_is_refused_and_spends_nothing() {
    let (forger, mut rng) = (forger(), seeded());
    let (start, hit) = found(&forger.vault, "q", &mut rng);
    let Ticket(genuine) = forger.ticket("q");
    let redeem = |bytes| forger.vault.redeem(start, &hit, &Ticket(bytes), None, &message(&forger.author));
    for at in 0..genuine.len() {
        let mut bytes = genuine.clone();
        bytes[at] ^= 1 << rng.random_range(0..8);
        assert!(matches!(redeem(bytes), Err(VaultError::ForeignTicket)), "byte {at}");
        assert!(matches!(redeem(genuine[..at].to_vec()), Err(VaultError::ForeignTicket)), "{at} bytes");
    }
    for _ in 0..200 {
        let noise = (0..rng.random_range(0..300)).map(|_| rng.random::<u8>()).collect();
        assert!(matches!(redeem(noise), Err(VaultError::ForeignTicket)));
    }
    assert!(matches!(redeem([&genuine[..], &[0]].concat()), Err(VaultError::ForeignTicket)), "a byte more");
    // The layout of a ticket is public; only the key of its MAC is secret.
    let foreign = vault().ticket_for_tests(&any(&forger.author)).unwrap();
    assert!(matches!(redeem(foreign.0), Err(VaultError::ForeignTicket)), "of another identity");
    let opened = forger.open(&forger.with_rumor(forger.asking("how are you?").as_json())).unwrap();
    assert_eq!(opened.ticket, None, "it asks for no key");
    assert!(redeem(genuine).is_ok());
}

#[test]
fn a_hit_that_its_ticket_does_not_ask_for_is_refused_and_spent() {
    let (forger, mut rng) = (forger(), seeded());
    for (text, pattern) in [("q", "p"), ("best", "p")] {
        let (start, hit) = found(&forger.vault, pattern, &mut rng);
        let redeem = || forger.vault.redeem(start, &hit, &forger.ticket(text), None, &message(&forger.author));
        assert!(matches!(redeem(), Err(VaultError::NotAsked)), "{text}");
        assert!(matches!(redeem(), Err(VaultError::StartSpent)), "{text}");
    }
    // A rare key of the family is redeemed.
    let zeros = Order { asked: Asked { wanted: Wanted::Rarest(Family::Zeros), half: None }, ..any(&forger.author) };
    let rare = Npub([0; 32]);
    assert!(zeros.allow(&rare, None).is_ok() && zeros.allow(&Npub([1; 32]), None).is_err());
}

fn any(keys: &Keys) -> Order {
    Order::any_key(asker(keys), None)
}

#[test]
fn a_tweak_is_for_the_half_in_the_ticket_and_a_whole_key_for_a_ticket_without_one() {
    let (forger, mut rng) = (forger(), seeded());
    let (own, other) = (half::new(), half::new());
    let letters = crate::pattern::ALPHABET.iter().map(|&letter| format!(" {}", char::from(letter))).collect::<String>();
    let of_half = |half: &Half| forger.ticket(&format!("{}{letters}", half.point()));
    let whole = forger.ticket(letters.trim());
    let mut reveal = |at: &Half, ticket: &Ticket| {
        let (start, point) = forger.vault.open_split_start(&at.point()).unwrap();
        forger.vault.redeem(start, &hit(point, &mut rng), ticket, None, &message(&forger.author))
    };
    let tweak = last_message(&forger.author, &reveal(&own, &of_half(&own)).unwrap()).unwrap();
    assert!(own.combine(&tweak.parse().unwrap(), &[], None).is_ok());
    assert!(matches!(reveal(&own, &of_half(&other)), Err(VaultError::NotAsked)));
    assert!(matches!(reveal(&own, &whole), Err(VaultError::NotAsked)));
    let (start, point) = forger.vault.open_start().unwrap();
    let hit = hit(point, &mut rng);
    let refused = forger.vault.redeem(start, &hit, &of_half(&own), None, &message(&forger.author));
    assert!(matches!(refused, Err(VaultError::NotAsked)));
}

#[test]
fn the_ticket_of_a_claim_gives_no_key_before_its_author_confirms_it() {
    let (forger, mut rng, signer, stranger) = (forger(), seeded(), Keys::generate(), Keys::generate());
    let hex = |keys: &Keys| keys.public_key().to_hex();
    let claim = forger.claim(&wrap(&forger, &forger.asking("q"), &signer, &signer, None));
    let claimed = claim.unverified().ticket.clone().unwrap();
    let now = Timestamp::from_secs(DATE);
    let genuine = announced_at(&forger.author, &[&["n", &hex(&signer)]], now);
    let redeem = |ticket: &Ticket, rng: &mut StdRng| {
        let (start, hit) = found(&forger.vault, "q", rng);
        forger.vault.redeem(start, &hit, ticket, Some(&genuine), &message(&forger.author))
    };
    assert!(matches!(redeem(&claimed, &mut rng), Err(VaultError::ForeignTicket)));
    // An attacker in the bot's process could send the vault any request. The bot's own check is
    // skipped here.
    let confirm = |json: &str| {
        let (ticket, announcement) = (claimed.clone(), json.to_owned());
        forger.vault.process.ask::<Ticket>(Request::Confirm { ticket, announcement })
    };
    let of = |by: &Keys, key: &Keys| announced_at(by, &[&["n", &hex(key)]], now).json().to_owned();
    let forged = genuine.json().replace(&hex(&forger.author), &hex(&stranger));
    let refused = [of(&forger.author, &stranger), of(&signer, &signer), of(&stranger, &signer), forged, String::new()];
    for announcement in refused {
        assert!(matches!(confirm(&announcement), Err(VaultError::ForeignTicket)), "{announcement}");
    }
    let ticket = confirm(genuine.json()).expect("it is the author's own");
    let sealed = redeem(&ticket, &mut rng).unwrap();
    assert_eq!(sealed.to, asker(&forger.author));
    assert!(opened_by(&signer, &sealed).is_some() && opened_by(&forger.author, &sealed).is_none());
    let confirmed = forger.vault.confirm(claim, Some(&genuine)).unwrap();
    assert_eq!(confirmed.ticket.as_ref(), Some(&ticket));
}

#[test]
fn a_result_is_encrypted_to_a_newer_key_only_if_its_author_announced_it() {
    let (forger, mut rng) = (forger(), seeded());
    let (used, newer, thief) = (Keys::generate(), Keys::generate(), Keys::generate());
    let hex = |keys: &Keys| keys.public_key().to_hex();
    let named = Some(hex(&used));
    let request = wrap(&forger, &forger.asking("q"), &forger.author, &used, named);
    let ticket = forger.open(&request).unwrap().ticket.unwrap();
    let mut who_opens = |by: &Keys, key: Option<&Keys>, date: u64| {
        let tag = key.map(|key| ["n".to_owned(), hex(key)]).unwrap_or_default();
        let tag: Vec<&str> = tag.iter().map(String::as_str).collect();
        let tags = if key.is_some() { vec![&tag[..]] } else { Vec::new() };
        let announcement = announced_at(by, &tags, Timestamp::from_secs(date));
        let (start, hit) = found(&forger.vault, "q", &mut rng);
        let wrap = forger.vault.redeem(start, &hit, &ticket, Some(&announcement), &message(&thief)).unwrap();
        [&forger.author, &used, &newer, &thief].map(|keys| opened_by(keys, &wrap).is_some())
    };
    let author = forger.author.clone();
    assert_eq!(who_opens(&author, Some(&newer), DATE + 1), [false, false, true, false]);
    assert_eq!(who_opens(&author, None, DATE + 1), [true, false, false, false], "withdrawn");
    assert_eq!(who_opens(&author, Some(&newer), DATE), [false, true, false, false], "older than the request");
    assert_eq!(who_opens(&thief, Some(&thief), DATE + 1), [false, true, false, false], "somebody else's");
}

/// Tickets are in ledgers and backups, so their form does not change: an order in postcard's
/// encoding, then HMAC-SHA256 of it. The key of that MAC is HMAC-SHA256 of `npubbot ticket 1` (or
/// `npubbot claim 1`) under the identity. Here the identity's secret key is 1, the asker's key 02…,
/// the message's id 03…
#[test]
fn tickets_are_those_of_the_vectors() {
    let one = nostr::SecretKey::from_hex(&format!("{:064x}", 1)).unwrap();
    let bot = secret::Signing::from_nsec(&one.to_bech32().unwrap()).unwrap();
    let order = |wanted, half, encryption_key| Order {
        asker: Asker([2; 32]),
        rumor: RumorId([3; 32]),
        dated: DATE,
        encryption_key,
        asked: Asked { wanted, half },
    };
    let patterns = |words: &[&str]| Wanted::Patterns(words.iter().map(|word| word.parse().unwrap()).collect());
    let half = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798".parse().unwrap();
    let vectors = [
        (
            ticket::Author::Verified,
            order(patterns(&["m0ctane"]), None, None),
            concat!(
                "0202020202020202020202020202020202020202020202020202020202020202030303030303030303030303",
                "030303030303030303030303030303030303030380a4a7da06000001076d306374616e6500bad462e1202fcf",
                "7a059bfa1b01f4486e528c74c69e99a9d6687face6c5a46c60"
            ),
        ),
        (
            ticket::Author::Claimed,
            order(patterns(&["m0ctane"]), None, Some(EncryptionKey([4; 32]))),
            concat!(
                "0202020202020202020202020202020202020202020202020202020202020202030303030303030303030303",
                "030303030303030303030303030303030303030380a4a7da0601040404040404040404040404040404040404",
                "04040404040404040404040404040001076d306374616e65009f255e0b1637e8e63f795511ff9b8f4c30ddaf",
                "09eb4532458afed6eff45c40bd"
            ),
        ),
        (
            ticket::Author::Verified,
            order(patterns(&["cafe", "*dead"]), Some(half), None),
            concat!(
                "0202020202020202020202020202020202020202020202020202020202020202030303030303030303030303",
                "030303030303030303030303030303030303030380a4a7da060000020463616665052a64656164010279be66",
                "7ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f817985e70e5ff75c6b5eaaf3b07614a5470",
                "9f7cc41cad48c11ce29c68df80b9240b2b"
            ),
        ),
        (
            ticket::Author::Verified,
            order(Wanted::Rarest(Family::Zeros), None, None),
            concat!(
                "0202020202020202020202020202020202020202020202020202020202020202030303030303030303030303",
                "030303030303030303030303030303030303030380a4a7da06000101006762d6c30512ed6c75ecb911854635",
                "fc63de8eb59281dc6688ee03187c1d70c7"
            ),
        ),
    ];
    for (author, order, expected) in vectors {
        let ticket = ticket::issue(&bot, author, &order).unwrap();
        let hex: String = ticket.0.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected, "{order:?}");
        assert_eq!(ticket::read(&bot, author, &ticket).unwrap(), order);
    }
}
