//! Jobs that are handed over to another bot, and the messages between the two.

use super::patterns::KINDS;
use super::*;
use crate::bot::notices;
use crate::bot::peers::{beginning_of_acceptance, can_be_written, is_acceptance, request_to_peer, tweaks_in};
use crate::job::HandOver;
use crate::key::{Offset, Rotation, SplitTweak, Tweak};
use crate::vault::{Asked, Wanted};
use secp256k1::Scalar;

/// The x-coordinate of the generator.
const POINT: [u8; 32] = [
    0x79, 0xbe, 0x66, 0x7e, 0xf9, 0xdc, 0xbb, 0xac, 0x55, 0xa0, 0x62, 0x95, 0xce, 0x87, 0x0b, 0x07, 0x02, 0x9b, 0xfc,
    0xdb, 0x2d, 0xce, 0x28, 0xd9, 0x59, 0xf2, 0x81, 0x5b, 0x16, 0xf8, 0x17, 0x98,
];

fn facts<'a>(limits: &'a Limits, asker: &'a AskerView) -> Facts<'a> {
    Facts { rate: Some(Rate(80e6)), peers_have_room: true, ..context(limits, asker) }
}

fn spec(text: &str, facts: &Facts<'_>) -> Option<JobSpec> {
    match decide(&rumor(text), facts) {
        Decision::Accept { spec, .. } => Some(spec),
        _ => None,
    }
}

#[test]
fn a_peer_reads_in_a_request_what_the_job_asks_for() {
    for kind in KINDS.into_iter().chain(["cancel", "m0ctane", "=7 ~alice *al7ce*@12"]) {
        let patterns: Vec<Pattern> = kind.split(' ').map(|word| word.parse().unwrap()).collect();
        if !can_be_written(&patterns) {
            continue;
        }
        let text = request_to_peer(&Npub(POINT), &patterns);
        let half = format!("02{}", POINT.map(|byte| format!("{byte:02x}")).concat()).parse().ok();
        assert_eq!(
            crate::bot::asked(&rumor(&text)),
            Some(Asked { wanted: Wanted::Patterns(patterns), half }),
            "{text}"
        );
        assert_eq!(read(&rumor(&text)).language(English), English, "{text}");
    }
    let hex = "hex:00000000000000000000000000000000000000000000000000000000c0dec0de".parse().unwrap();
    assert!(!can_be_written(&[hex]), "the vault would leave it out");
}

/// Bots of other operators may run another version, so the first words of an acceptance must not
/// change.
#[test]
fn an_acceptance_is_known_by_its_first_words() {
    assert_eq!(beginning_of_acceptance(JobId(12)), "Job #12: searching for ");
    let (limits, asker) = (limits(), AskerView::default());
    let facts = Facts { peers_have_room: false, ..facts(&limits, &asker) };
    let said = |text: &str| match decide(&rumor(text), &facts) {
        Decision::Accept { reply, .. } | Decision::Say(reply) => reply.text(English),
        other => panic!("{other:?}"),
    };
    let request = |prefix: &str| said(&request_to_peer(&Npub(POINT), &[prefix.parse().unwrap()]));
    assert!(is_acceptance(&request("cat")));
    for refusal in [request("qqqqqqqqqqqqqq"), said("help"), said("split"), String::new(), "#".to_owned()] {
        assert!(!is_acceptance(&refusal), "{refusal}");
    }
    let spec = JobSpec::local(vec!["cat".parse().unwrap()]);
    let job = Job { spec, ..job(7, "cat", JobState::Accepted) };
    for notice in [notices::late(&job, 1), notices::given_up(&job), notices::lost(&job)] {
        assert!(notice.contains("#7") && !is_acceptance(&notice), "{notice}");
    }
    assert!(!is_acceptance("Job #99999999999999999999: searching for npub1cat."));
}

#[test]
fn few_tweaks_are_read_and_nothing_else() {
    let tweak = Tweak { offset: Offset::from_scalar(Scalar::ONE), rotation: Rotation::ALL[0] };
    let split = SplitTweak { tweak, fingerprint: [7; 8] };
    let text = format!("Here: {split}\nntweak1qq {split} nsec1qq {split}");
    assert_eq!(tweaks_in(&text, 4), [split; 3]);
    assert_eq!(tweaks_in(&text, 2), [split; 1], "damaged ones count");
    assert_eq!(tweaks_in("no tweak at all", 4), []);
}

#[test]
fn long_jobs_and_every_second_hard_one_are_handed_over_and_no_others() {
    let (limits, asker) = (limits(), AskerView::default());
    let at = |job: i64| Facts { next_job: JobId(job), ..facts(&limits, &asker) };
    let reason = |text: &str, facts: &Facts<'_>| spec(text, facts).and_then(|spec| spec.hand_over);
    // The expected times of the three prefixes are 430 seconds, 14,000 seconds and 160 days.
    assert_eq!([1, 2, 3, 4].map(|job| reason("qqqqqqq", &at(job))), [None; 4]);
    assert_eq!(
        [1, 2, 3, 4].map(|job| reason("qqqqqqqq", &at(job))),
        [None, Some(HandOver::Hard), None, Some(HandOver::Hard)]
    );
    assert_eq!([1, 2].map(|job| reason("qqqqqqqqqq", &at(job))), [Some(HandOver::TooLong); 2]);
    // If the peers have no room, the answers are those of a bot without peers.
    let full = Facts { peers_have_room: false, ..at(2) };
    assert_eq!(reason("qqqqqqqq", &full), None);
    assert!(spec("qqqqqqqqqq", &full).is_none());
    // A bot that is asked as a peer does not hand the job on.
    let split = |prefix: &str| request_to_peer(&Npub(POINT), &[prefix.parse().unwrap()]);
    assert_eq!(reason(&split("qqqqqqqq"), &at(2)), None);
    assert!(spec(&split("qqqqqqqqqq"), &at(2)).is_none());
    // A search without a target has its own limit.
    assert_eq!(reason("best 10m", &at(2)), None);
    assert!(spec("best 3h", &at(2)).is_none());
}

/// All other refusals stay: a peer gives nobody more than this bot would.
#[test]
fn other_refusals_stand() {
    let (limits, idle) = (limits(), AskerView::default());
    let open = || job(1, "cat", JobState::Accepted);
    let busy = AskerView { open: vec![open(), open()], ..AskerView::default() };
    assert!(spec("qqqqqqqqqq", &facts(&limits, &busy)).is_none());
    let today = AskerView { accepted_last_day: vec![1_799_999_999; 4], ..AskerView::default() };
    assert!(spec("qqqqqqqqqq", &facts(&limits, &today)).is_none());
    let owes = Some(WorkWanted { bits: 20, ends_in: Duration::from_secs(40) });
    assert!(spec("qqqqqqqqqq", &Facts { owes, ..facts(&limits, &idle) }).is_none());
    assert!(spec("qqqqqqqqqq", &Facts { rate: None, ..facts(&limits, &idle) }).is_none(), "not measured");
    assert_eq!(spec("qqqqqqqqqq", &facts(&limits, &idle)).map(|spec| spec.asker), Some(Asker([2; 32])));
}
