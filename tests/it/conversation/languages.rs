//! The bot answers askers in their language. Results and notices that come days later are in it
//! too.

use crate::support::asker::Asker;
use crate::support::bot::{Met, met};
use crate::support::harness::{Test, test};

pub const TESTS: &[Test] = &[test!(answers_and_results_come_in_the_last_language_even_after_a_restart)];

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
