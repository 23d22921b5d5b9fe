//! The bot answers askers in their language. Results and notices that come days later are in it
//! too.

use crate::support::asker::Asker;
use crate::support::bot::{Home, Met, met};
use crate::support::harness::{Test, test};
use crate::support::relay::TestRelay;
use npubbot::bot::{BotReply, Question};
use npubbot::language::Language;

pub const TESTS: &[Test] = &[
    test!(answers_and_results_come_in_the_last_language_even_after_a_restart),
    test!(messages_as_people_write_them_are_answered_as_they_are_meant),
];

/// Messages as people write them, with the labels of fitting answers.
const MESSAGES: &str = include_str!("../../messages/given.tsv");

async fn answers_and_results_come_in_the_last_language_even_after_a_restart() {
    let Met { relay, home, bot: running, mut asker } = met("").await;
    let mut other = Asker::connect(&relay.url(), running.public_key).await;
    assert!(asker.ask("m0c を探して").await.contains("を探します"));
    assert!(asker.next_text().await.contains("秘密鍵だけです"), "the key, with Japanese words around it");
    running.service.stop().await;

    let _running = home.start().await;
    assert!(asker.ask("cat").await.contains("npub1catを探します"), "a prefix tells no language");
    let result = asker.next_text().await;
    assert!(result.contains("秘密鍵だけです") && result.contains("\n再送"), "{result}");
    let status = asker.ask("status").await;
    assert!(status.contains("進行中のジョブはありません"), "nor does an English command: {status}");
    assert!(other.ask("status").await.contains("You have no open job"), "other askers have their own language");
    assert!(asker.ask("lang en").await.contains("I answer in English now"));
    // Not "status" again: within a second that would be the same message, with the same id.
    assert!(asker.ask("Status").await.contains("You have no open job"));
}

/// Whether an answer is one that the label names; `None` for labels that this test does not try.
fn reads_as(answer: &str, label: &str, language: Language) -> Option<bool> {
    let is = |reply: BotReply| Some(answer.starts_with(&reply.text(language)));
    match label {
        "who" => is(BotReply::Answer(Question::Who)),
        "price" => is(BotReply::Answer(Question::Price)),
        "safety" => Some(
            answer.starts_with(&BotReply::Answer(Question::Safety).text(language))
                || answer == BotReply::SecretKey.text(language),
        ),
        "import" => is(BotReply::Answer(Question::Import)),
        "thanks" => is(BotReply::Thanks),
        "smalltalk" => is(BotReply::Chat),
        "help-split" => is(BotReply::SplitHelp { page: None }),
        "help" => Some(answer.contains("m0ctane") && answer.contains("surprise")),
        label => label
            .strip_prefix("offer:")
            .map(|pattern| answer.lines().any(|line| line == pattern || line.ends_with(&format!(" {pattern}")))),
    }
}

/// One asker a language, who has asked for its help first.
async fn messages_as_people_write_them_are_answered_as_they_are_meant() {
    let relay = TestRelay::start().await;
    let running = Home::new(&[relay.url()]).start().await;
    let mut tried = 0;
    for language in Language::ALL {
        let mut asker = Asker::connect(&relay.url(), running.public_key).await;
        asker.ask(&format!("lang {}", language.code())).await;
        let rows = MESSAGES.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        let of_language = rows.filter(|row| row[1] == language.code() && ["new", "known"].contains(&row[2]));
        let fixed = of_language.filter(|row| row[4].split('|').all(|label| reads_as("", label, language).is_some()));
        for row in fixed.take(9) {
            let answer = asker.ask(&row[3].replace("\\n", "\n")).await;
            // A message may be in another language than the chat, and its answer too.
            let fits =
                |label: &str| Language::ALL.iter().any(|&language| reads_as(&answer, label, language) == Some(true));
            assert!(row[4].split('|').any(fits), "{row:?}: {answer}");
            tried += 1;
        }
    }
    assert!(tried >= 40, "{tried}");
}
