//! Secret types stay in the vault. It exports none except handles and passphrases, and no other
//! room names a library's secret type, except at the places in `ALLOWED`.

use super::tokens::{Token, tokens};
use crate::support::harness::{Test, test};
use crate::support::source;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

pub const TESTS: &[Test] = &[
    test!(the_vault_exports_no_type_that_holds_a_secret),
    test!(no_other_room_names_a_secret_type),
    test!(a_type_that_holds_a_secret_is_recognised),
];

/// Types of libraries that hold a secret.
const LIBRARIES: [&str; 7] =
    ["SecretKey", "Keypair", "Keys", "SecretString", "EncryptedSecretKey", "Identity", "Zeroizing"];

/// Exported types that hold the passphrase of a person.
const PASSPHRASES: [&str; 2] = ["Unlock", "Lock"];

/// Exported handles. Their secrets are behind private fields.
const HANDLES: [&str; 3] = ["Vault", "HalfVault", "BotSigner"];

/// Places in other rooms that may name secret types, and why. A folder includes everything in it.
const ALLOWED: [(&str, &[&str], &str); 11] = [
    ("key/tweak.rs", &["SecretKey"], "a public number in libsecp256k1's form"),
    ("search/cuda/geometry.rs", &["SecretKey"], "a public number"),
    ("search/cpu/table.rs", &["SecretKey"], "a public number"),
    ("bot/", &["SecretKey"], "a variant: what a text with a key in it means"),
    ("cli/demo/", &["SecretKey", "Keys", "Identity"], "the asker of the demo, and the key of its bot's file"),
    ("cli/unlock.rs", &["SecretString", "Zeroizing", "Unlock"], "a passphrase is typed"),
    ("cli/backup.rs", &["Unlock", "Lock"], "a passphrase for a backup"),
    ("backup/", &["Unlock", "Lock"], "a passphrase for a backup"),
    ("cli/mine.rs", &["Zeroizing"], "a password is typed"),
    ("cli/mine_best.rs", &["Zeroizing"], "a key before it is printed"),
    ("cli/key_output.rs", &["Zeroizing"], "a key before it is printed"),
];

/// The types that a file defines, each with the words of its definition except the names of
/// variants.
fn definitions(tokens: &[Token]) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let is_definition = ["struct", "enum", "union", "type"].contains(&tokens[at].text.as_str());
        let Some(name) = tokens.get(at + 1).filter(|_| is_definition) else { continue };
        let (mut depth, mut body) = (0, Vec::new());
        for token in &tokens[at + 2..] {
            let follows = body.last().is_some_and(|last: &String| ["{", ",", "]"].contains(&last.as_str()));
            if tokens[at].text == "enum" && depth == 1 && follows && token.text.starts_with(char::is_alphabetic) {
                continue;
            }
            depth += i32::from(["{", "("].contains(&token.text.as_str()));
            depth -= i32::from(["}", ")"].contains(&token.text.as_str()));
            let is_end = depth == 0 && (token.text == "}" || token.text == ";");
            if is_end {
                break;
            }
            body.push(token.text.clone());
        }
        found.push((name.text.clone(), body));
    }
    found
}

/// The types that hold a secret: those of the libraries, those that the code `secret` defines, and
/// all types of `others` with such a type in their definition.
fn holders(secret: &str, others: &[String]) -> BTreeSet<String> {
    let mut holders: BTreeSet<String> = LIBRARIES.map(str::to_owned).into();
    holders.insert("Shown".to_owned());
    holders.extend(definitions(&tokens(secret)).into_iter().map(|(name, _)| name));
    let rest: Vec<_> = others.iter().flat_map(|code| definitions(&tokens(code))).collect();
    loop {
        let before = holders.len();
        let has_one = |body: &[String]| body.iter().any(|word| holders.contains(word));
        let more: Vec<_> = rest.iter().filter(|(_, body)| has_one(body)).map(|(name, _)| name.clone()).collect();
        holders.extend(more);
        if holders.len() == before {
            return holders;
        }
    }
}

/// The names in the `pub use` items of a file.
fn exported(code: &str) -> BTreeSet<String> {
    let tokens = tokens(code);
    let texts: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
    let mut names = BTreeSet::new();
    for at in (0..texts.len()).filter(|&at| texts[at..].starts_with(&["pub", "use"])) {
        names.extend(texts[at + 2..].iter().take_while(|text| **text != ";").map(|text| text.to_string()));
    }
    names
}

fn vault() -> BTreeMap<String, String> {
    let top = source::root().join("src/vault");
    let files = source::library().into_iter().filter_map(|file| {
        let name = file.strip_prefix(&top).ok()?.display().to_string();
        Some((name, fs::read_to_string(file).unwrap()))
    });
    files.collect()
}

fn the_vault_exports_no_type_that_holds_a_secret() {
    let mut files = vault();
    let (room, secret) = (files.remove("mod.rs").unwrap(), files.remove("secret.rs").unwrap());
    let texts: Vec<String> = tokens(&room).into_iter().map(|token| token.text).collect();
    let is_open = |three: &[String]| three[0] != "use" && three[1] != "use" && three[2] == "mod" && three[1] != ";";
    let is_public = |three: &[String]| (three[1] == "pub" || three[1] == ")") && is_open(three);
    assert!(!texts.windows(3).any(is_public), "src/vault/mod.rs has a module that is not private");
    let others: Vec<String> = files.values().cloned().collect();
    let holders = holders(&secret, &others);
    for name in
        ["Start", "HalfKey", "DerivedKey", "Signing", "SecretText", "Half", "CombinedKey", "Secrets", "HeldHalf"]
    {
        assert!(holders.contains(name), "{name} holds a secret");
    }
    let exported: BTreeSet<String> = exported(&room).intersection(&holders).cloned().collect();
    let allowed = HANDLES.into_iter().chain(PASSPHRASES).map(str::to_owned).collect();
    assert_eq!(exported, allowed, "exported types that hold a secret");
    // The fields of a handle are private, so only the vault can reach the secrets behind it.
    for (name, body) in others.iter().flat_map(|code| definitions(&tokens(code))) {
        if HANDLES.contains(&name.as_str()) {
            let open = body.windows(2).find(|two| two[0] == "pub" && two[1] != "(");
            assert!(open.is_none(), "{name} has a public field: {open:?}");
        }
    }
}

fn no_other_room_names_a_secret_type() {
    let words: Vec<&str> = LIBRARIES.into_iter().chain(PASSPHRASES).collect();
    let (mut found, mut used) = (BTreeSet::new(), BTreeSet::new());
    for file in source::library() {
        let name = source::below_src(&file).display().to_string();
        for token in tokens(&fs::read_to_string(&file).unwrap()) {
            if name.starts_with("vault/") || !words.contains(&token.text.as_str()) {
                continue;
            }
            let may = |(place, words, _): &(&str, &[&str], &str)| {
                (name == *place || (place.ends_with('/') && name.starts_with(place)))
                    && words.contains(&token.text.as_str())
            };
            match ALLOWED.iter().position(may) {
                Some(at) => _ = used.insert(at),
                None => _ = found.insert(format!("{}:{} has `{}`", source::from_top(&name), token.line, token.text)),
            }
        }
    }
    assert!(found.is_empty(), "secret types outside of the vault:\n{}", Vec::from_iter(found).join("\n"));
    let unused: Vec<_> = (0..ALLOWED.len()).filter(|at| !used.contains(at)).map(|at| ALLOWED[at].0).collect();
    assert!(unused.is_empty(), "no longer needed in the table: {unused:?}");
}

fn a_type_that_holds_a_secret_is_recognised() {
    let secret = "pub(super) struct Scalar(Box<[u8; 32]>);";
    let others = [
        "struct Held { half: Option<Arc<Half>> }\nstruct Point(PublicKey);",
        "pub struct Half { key: Scalar, point: Point }\nenum Way { Here(Held), There }",
        "struct Password { text: Zeroizing<String> }\nstruct Public;\nstruct Last(Way);",
    ];
    let holders = holders(secret, &others.map(str::to_owned));
    for name in ["Scalar", "Half", "Held", "Way", "Password", "Last"] {
        assert!(holders.contains(name), "{name}");
    }
    assert!(["Point", "Public"].iter().all(|name| !holders.contains(*name)));
    let names = exported("mod a;\npub use a::{One, Two as Three};\nuse b::Four;");
    assert!(names.contains("One") && names.contains("Three") && !names.contains("Four"));
}
