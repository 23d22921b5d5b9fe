//! The lists of messages as people write them, in `tests/messages`.

use super::*;
use crate::bot::asked;
use crate::bot::reading::read_text;
use crate::bot::reply::fits;
use crate::bot::request::{ChatContext, Intent};
use crate::bot::testing::{asker, decisions, label_of};
use crate::bot::vocabulary::example;
use crate::language::Language;
use crate::vault::Wanted;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Messages that were there before the reading was written, and improve it.
const GIVEN: &str = include_str!("../../../tests/messages/given.tsv");
/// Further messages that improve it.
const MORE: &str = include_str!("../../../tests/messages/more.tsv");
/// Messages that were written before the reading was. Nothing is tuned to them.
const UNSEEN: &str = include_str!("../../../tests/messages/unseen.tsv");
/// Forms that the manual names and their like. All of them are read rightly.
const FORMS: &str = include_str!("../../../tests/messages/forms.tsv");

/// Whether two labels are the same in a context: the only job is all jobs.
fn is_same(label: &str, wanted: &str, context: &str) -> bool {
    let one =
        |label: &str| if label == "cancel:7" && context == "job" { "cancel".to_owned() } else { label.to_owned() };
    one(label) == one(wanted)
}

/// Wrong and harmful messages, and the right and all messages of each language.
type Judgement = (Vec<String>, Vec<String>, BTreeMap<String, (usize, usize)>);

/// Messages of a list that are answered wrongly and those whose answer does harm, and the number of
/// right answers and of messages in each language.
fn judge(file: &str) -> Judgement {
    let labels: BTreeMap<String, String> = decisions(file).into_iter().collect();
    let (mut wrong, mut harmful, mut counts) = (Vec::new(), Vec::new(), BTreeMap::<String, (usize, usize)>::new());
    for line in file.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [id, language, context, message, wanted, rest @ ..] = columns.as_slice() else { panic!("{line}") };
        let label = &labels[*id];
        let is_right = wanted.split('|').any(|wanted| is_same(label, wanted, context));
        let does_harm = |never: &str| match never {
            "search" => label.starts_with("search:"),
            "cancel" => label.starts_with("cancel"),
            _ => is_same(label, never, context),
        };
        let said = format!("{id} [{context}] {message:?}: {label}, not {wanted}");
        if !is_right && rest.first().is_some_and(|never| never.split(';').any(does_harm)) {
            harmful.push(said.clone());
        }
        let count = counts.entry((*language).to_owned()).or_default();
        *count = (count.0 + usize::from(is_right), count.1 + 1);
        wrong.extend((!is_right).then_some(said));
    }
    (wrong, harmful, counts)
}

#[test]
fn messages_are_read_as_their_senders_mean_them() {
    // As many as are read rightly today, so that every rule is noticed that goes.
    for (file, least, most_harmful) in [(GIVEN, 315, 0), (MORE, 902, 0), (UNSEEN, 190, 1), (FORMS, 122, 0)] {
        let (wrong, harmful, counts) = judge(file);
        let all: usize = counts.values().map(|(_, all)| all).sum();
        let right = all - wrong.len();
        println!("{right} of {all} right, {counts:?}\n{}", wrong.join("\n"));
        assert!(right >= least, "{right} of {all}: {}", wrong.join("\n"));
        assert!(harmful.len() <= most_harmful, "{}", harmful.join("\n"));
    }
}

/// The vault makes the ticket without knowing the chat.
#[test]
fn the_ticket_is_for_every_key_that_a_decision_searches_for() {
    let of_table = |line: &str| line.split('\t').nth(3).map(|message| message.replace("\\n", "\n"));
    let told = [GIVEN, UNSEEN, MORE, FORMS].into_iter().flat_map(str::lines).skip(1).filter_map(of_table);
    // Words of other languages than the chat's make them another search.
    let mixed = ["haelfte", "halfte", "hälfte", "demi", "mitad", "best 50s", "please best 50s,"]
        .map(|words| [format!("{words} {POINT} catcat"), format!("{words} cara"), format!("{words} {POINT} best 10m")]);
    // A message of people in one of the six languages and four states of a chat, in turn.
    let told = told.enumerate().map(|(at, message)| (message, at % 24, 24));
    for (message, first, step) in told.chain(mixed.into_iter().flatten().map(|message| (message, 0, 1))) {
        let ticket = asked(&rumor(&message));
        let of_state = |context| Language::ALL.map(|language| (language, context));
        let chats = ["new", "known", "job", "done"].into_iter().flat_map(of_state);
        for (language, context) in chats.skip(first).step_by(step) {
            let Some(asker) = asker(context, language) else { continue };
            let request = read(&rumor(&message));
            let Intent::Search(target, half) = request.reading(&asker).intent else { continue };
            let wanted = target.wanted();
            assert!(half.is_none() || half == request.half(), "{message:?}: the caller looks up another half");
            let ticket = ticket.as_ref().unwrap_or_else(|| panic!("{message:?} in {language:?}: no ticket"));
            assert_eq!(half, ticket.half, "{message:?} in {language:?}");
            match (&wanted, &ticket.wanted) {
                (Wanted::Patterns(patterns), Wanted::Patterns(asked)) => {
                    assert!(
                        patterns.iter().all(|pattern| asked.contains(pattern)),
                        "{message:?}: {patterns:?} {asked:?}"
                    );
                }
                (wanted, asked) => assert_eq!(wanted, asked, "{message:?} in {language:?}"),
            }
        }
    }
}

/// Words that ask for no pattern, in each language, without those that could be one.
const AROUND: [&str; 6] = [
    "please can you now it the my job cancel stop status help again thanks for me",
    "キャンセル 状態 ください お願いします 再送 ヘルプ 止めて もう 今 です",
    "por favor cancelar el trabajo ya ayuda estado reenviar gracias me la lo",
    "por favor cancelar o pedido agora ajuda estado reenviar obrigado me a",
    "bitte abbrechen den auftrag jetzt hilfe status nochmal danke mir das",
    "annuler la demande maintenant aide état renvoyer merci me le",
];

/// The first phrase of each section is understood. Those with an effect are the table of the manual.
#[test]
fn the_manual_shows_what_is_understood() {
    let manual = include_str!("../../../docs/askers/asking.md");
    let rows = [
        ("help", "help", ""),
        ("status", "status", "your open jobs"),
        ("cancel", "cancel", "ends your job"),
        ("resend", "resend", "the last key again"),
        ("stop", "stop", "no more messages"),
        ("delete", "delete", "asks once, then forgets you"),
        ("split", "help-split", "how to keep half of the key"),
        ("who", "who", ""),
        ("price", "price", "what it costs"),
        ("safety", "safety", "who can see the key"),
        ("import", "import", ""),
    ];
    for (section, expected, effect) in rows {
        let examples = Language::ALL.map(|language| example(language, section));
        let row = format!("| {effect} | {} |", examples.join(" | "));
        assert!(effect.is_empty() || manual.lines().any(|line| line == row), "the manual lacks {row}");
        for (language, example) in Language::ALL.into_iter().zip(examples) {
            let label = label_of(example, &asker("job", language).unwrap());
            assert!(is_same(&label, expected, "job"), "{example}: {label}");
        }
    }
}

proptest! {
    #[test]
    fn commands_and_fillers_never_start_a_search(
        language in 0..6usize,
        picked in prop::collection::vec(0..20usize, 2..7),
        context in prop::sample::select(vec!["known", "job", "done"]),
    ) {
        let words: Vec<&str> = AROUND[language].split(' ').collect();
        let text = picked.iter().map(|at| words[at % words.len()]).collect::<Vec<_>>().join(" ");
        let asker = asker(context, Language::ALL[language]).unwrap();
        let label = label_of(&text, &asker);
        prop_assert!(!label.starts_with("search:"), "{text:?}: {label}");
    }

    #[test]
    fn any_text_is_read_in_any_language(text in any::<String>(), language in prop::sample::select(Language::ALL.to_vec())) {
        let reading = read_text(&text, &ChatContext { language, ..ChatContext::default() });
        prop_assert!(reading.language == language || !text.is_empty());
    }
}

/// Lines that an answer asks to send: those after a line that ends with a colon.
pub(super) fn ready_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_ready = |two: &&[&str]| {
        two[0].ends_with([':', '：'])
            && !two[1].contains([':', '：'])
            && !two[1].contains(". ")
            && !two[1].ends_with(['.', ':', '。', '：'])
    };
    lines.windows(2).filter(is_ready).map(|two| two[1].to_owned()).collect()
}

/// What the bot asks people to send is understood when they send it.
#[test]
fn every_line_that_is_ready_to_send_is_accepted() {
    let mut seen = 0;
    for language in Language::ALL {
        for (state, message) in shown(language).filter(|(state, _)| !["busy", "spent"].contains(state)) {
            let asker = shown_asker(state, language);
            let answer = say_in(&message, &asker);
            for line in ready_lines(&answer) {
                seen += 1;
                let label = label_of(&line, &asker);
                let is_command_line = line.contains("npubbot") || line.contains("POINT") || line.contains('—');
                let is_refused = ["letters", "smalltalk", "offer", "refused"].iter().any(|bad| label.starts_with(bad));
                assert!(is_command_line || !is_refused, "{language:?}, {message:?}: {line:?} is {label}\n{answer}");
            }
        }
    }
    assert!(seen > 60, "{seen}");
}

/// The answer to a message of this asker.
fn say_in(message: &str, asker: &AskerView) -> String {
    let limits = crate::bot::testing::limits();
    let facts = Facts::idle(&limits, asker, Rate(80e6), NOW);
    decide(&rumor(message), &facts).1.map_or_else(String::new, |reply| reply.text)
}

/// Messages whose answers are shown in the snapshot of each language, each with the state of the
/// chat: as in the other lists, or `busy` for an asker who may have no further job, and `spent`.
const SHOWN: &str = include_str!("../../../tests/messages/shown.tsv");

/// The states and messages of [`SHOWN`] for a language.
fn shown(language: Language) -> impl Iterator<Item = (&'static str, String)> {
    let row = move |line: &'static str| {
        let mut columns = line.split('\t');
        let code = columns.next()?;
        let is_for_this = code == "*" || code == language.code();
        let (state, message) = (columns.next()?, columns.next()?.replace("POINT", POINT));
        is_for_this.then(|| (state, message.replace("\\u{202e}", "\u{202e}")))
    };
    SHOWN.lines().skip(1).filter_map(row)
}

/// An asker of [`SHOWN`].
fn shown_asker(state: &str, language: Language) -> AskerView {
    let jobs = ["m0ctane", "sugar", "cats"].into_iter().zip(3..).map(|(text, id)| job(id, text));
    let known = asker("known", language).unwrap();
    match state {
        "busy" => AskerView { open: jobs.collect(), results: vec![JobId(2)], ..known },
        "spent" => AskerView { accepted_last_day: vec![NOW - 70_000; 20], ..known },
        state => AskerView { language, ..asker(state, language).unwrap() },
    }
}

#[test]
fn answers_in_every_language() {
    for language in Language::ALL {
        let said = |(state, message): (&str, String)| {
            let answer = say_in(&message, &shown_asker(state, language));
            assert!(fits(&answer), "{answer}");
            format!("> {} [{state}]\n{answer}", message.replace(POINT, "POINT"))
        };
        let answers: Vec<String> = shown(language).map(said).collect();
        insta::assert_snapshot!(format!("answers_{}", language.code()), answers.join("\n---\n"));
    }
}
