//! The price of jobs, and the room that they share, for as long as it is short.

use super::*;
use crate::bot::price::{LEAST_BITS, MAX_BITS, bits_for};
use crate::job::{Asker, Priority};
use crate::key::{Npub, Work, WorkDay, WorkTarget};
use crate::pattern::ALPHABET;
use crate::scheduler::RoomTaken;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// A bot with the room that open jobs have taken.
struct Bot {
    limits: Limits,
    rate: f64,
    room: RoomTaken,
    accepted: Vec<JobSpec>,
    asked: usize,
}

impl Bot {
    /// The rate is that of top words. Whole keys take four times as long.
    fn of_rate(rate: f64) -> Bot {
        let limits = Limits { prefixes_per_job: 10, open_jobs_per_asker: 3, ..limits() };
        Bot { limits, rate, room: RoomTaken::default(), accepted: Vec::new(), asked: 0 }
    }

    /// Decides a request of an asker who paid this much.
    fn decide(&mut self, text: &str, asker: &AskerView, change: impl Fn(&mut Facts<'_>)) -> (Effect, BotReply) {
        self.asked += 1;
        let idle = context(&self.limits, asker);
        let shares = Shares { room: self.room, ..idle.shares };
        let (rate, whole) = (Some(Rate(self.rate)), Some(Rate(self.rate / 4.0)));
        let mut facts = Facts { rate, whole_keys_rate: whole, shares, ..idle };
        change(&mut facts);
        let (effect, reply) = decide(&rumor(text), &facts);
        if let Effect::Accept(_, spec) = &effect {
            self.room.add(spec);
            self.accepted.push(spec.clone());
        }
        (effect, reply.unwrap())
    }

    /// The bits that a request of a fresh key costs; `None` if it is refused for another reason. An
    /// accepted job stays open.
    fn price(&mut self, text: &str) -> Option<u32> {
        match self.decide(text, &nobody(), |_| ()) {
            (Effect::Accept(..), _) => Some(0),
            (_, reply) if reply.topic == "too-wide-now" => None,
            (_, reply) => Some(price_in(&reply)),
        }
    }
}

/// The bits that a reply asks for: the last word of its command.
fn price_in(reply: &BotReply) -> u32 {
    let command = reply.text.lines().find(|line| line.starts_with("npubbot work"));
    command.unwrap_or_else(|| panic!("{reply:?}")).rsplit(' ').next().unwrap().parse().unwrap()
}

/// Requests that take seconds on any device, and nearly no room.
const EASY: [&str; 5] = ["*cafe", "=7*", "m0c7*ca", "surprise", "m0ct"];

/// Fresh keys send what takes days, without end: four messages of 8 hard endings, one with four
/// patterns that many keys must be checked for, thirty of many intervals, and `best 10m`.
#[test]
fn jobs_of_hours_take_no_room_of_jobs_of_seconds() {
    let endings: String = ALPHABET.iter().take(8).map(|&end| format!("*casec0de{} ", char::from(end))).collect();
    for rate in [80e6, 1e9] {
        let mut bot = Bot::of_rate(rate);
        for _ in 0..100 {
            for hard in [&endings, "x0ct*cafe x0ct*cafd x0ct*cafa x0ct*cafs", "..m0c7a..7ln", "best 10m"] {
                bot.price(&hard.replace('.', "?"));
            }
        }
        assert!(!bot.accepted.is_empty() && bot.accepted.len() < 200, "{}", bot.accepted.len());
        for easy in EASY {
            assert_eq!(bot.price(easy), Some(0), "{easy} at {rate}");
        }
    }
}

#[test]
fn nobody_pays_while_it_is_calm() {
    let mut bot = Bot::of_rate(80e6);
    for text in EASY.into_iter().chain(["m0ctane", "*cafec0", "words:8", "best 10m", &format!("split {POINT} m0ctane")])
    {
        assert_eq!(bot.price(text), Some(0), "{text}");
    }
    assert!(bot.accepted.iter().all(|spec| spec.expires_at == NOW + bot.limits.give_up_after.as_secs()));
}

/// Half of the room is free, a quarter for one job of each asker, and the last costs work. What is
/// beyond half is free again after a day.
#[test]
fn beyond_half_a_place_is_for_one_job_an_asker_and_then_costs_work_and_lasts_a_day() {
    let mut bot = Bot::of_rate(80e6);
    let own = |bot: &Bot| {
        let mut own = job(3, "m0ctane");
        own.spec = bot.accepted.last().unwrap().clone();
        AskerView { open: vec![own], ..nobody() }
    };
    let lasts_a_day = |bot: &Bot| bot.accepted.last().unwrap().expires_at == NOW + 86_400;
    let mut free = 0;
    while bot.price("best 10m") == Some(0) && !lasts_a_day(&bot) {
        free += 1;
    }
    let (second, at_half) = (own(&bot), bot.accepted.len());
    let (effect, reply) = bot.decide("best 9m", &second, |_| ());
    assert_eq!((effect, price_in(&reply)), (Effect::Nothing, MAX_BITS));
    let (friend, _) = bot.decide("best 9m", &second, |facts| facts.priority = Priority::Friend);
    assert!(matches!(friend, Effect::Accept(..)), "a friend never notices");
    let mut first = 1;
    while bot.price("best 10m") == Some(0) {
        assert!(lasts_a_day(&bot));
        first += 1;
    }
    assert_eq!((free, at_half, first), (32, 33, 15), "and a friend's");
    let paid = |bot: &mut Bot, bits: u32| bot.decide("best 10m", &nobody(), |facts| facts.paid = bits);
    assert_eq!(price_in(&paid(&mut bot, MAX_BITS - 1).1), MAX_BITS);
    while let (Effect::Accept(..), _) = paid(&mut bot, MAX_BITS) {
        assert!(lasts_a_day(&bot));
    }
    assert_eq!(bot.accepted.len(), 64, "then no place is left");
    assert_eq!(paid(&mut bot, 64).1.topic, "too-wide-now");
    assert_eq!(bot.price("surprise"), Some(0), "ten seconds have a room of their own");
}

/// Thirty fresh keys a second that pay nothing leave a core its start points: each find uses one.
#[test]
fn fresh_keys_that_send_best_cost_a_core_few_finds() {
    for rate in [80e6, 178e9] {
        let mut bot = Bot::of_rate(rate);
        for _ in 0..30 * 60 {
            bot.price("best 10m");
            bot.price("surprise");
        }
        let hits = |spec: &JobSpec| {
            let mut spec = spec.clone();
            spec.begin(Some(Rate(rate)));
            let hits = spec.patterns.iter().map(|pattern| rate / pattern.difficulty().candidates());
            // A search that has found the rarest pattern of its family is over.
            hits.sum::<f64>().min(1.0)
        };
        let a_second: f64 = bot.accepted.iter().map(hits).sum();
        println!("{} jobs, {a_second:.1} hits a second at {rate:e}", bot.accepted.len());
        assert!(bot.accepted.len() <= 144 && a_second < 150.0, "{} jobs, {a_second}", bot.accepted.len());
    }
}

/// Two thousand split jobs of others make none dearer than its own device time, which a phone pays
/// in a minute or so.
#[test]
fn a_split_job_costs_what_its_device_time_costs() {
    let split = |pattern: &str| format!("split {POINT} {pattern}");
    let mut bot = Bot::of_rate(80e6);
    for _ in 0..2000 {
        for pattern in ["m0ctane7", "m0ctane", "m0ctq"] {
            bot.decide(&split(pattern), &nobody(), |facts| facts.paid = MAX_BITS);
        }
    }
    // One second, seven minutes, and four hours.
    assert_eq!(["m0ctq", "m0ctane", "m0ctane7"].map(|one| bot.price(&split(one)).unwrap()), [18, 26, 26]);
    assert_eq!(bot.price("m0ctane"), Some(0), "the pool costs nothing");
}

#[test]
fn the_work_doubles_with_the_device_time_up_to_what_a_phone_does_in_a_minute() {
    let bits =
        [0.0, 1.0, 1.5, 2.0, 10.0, 60.0, 256.0, 3600.0, 86_400.0].map(|time| bits_for(Duration::from_secs_f64(time)));
    assert_eq!(bits, [18, 18, 19, 19, 22, 24, 26, 26, 26]);
}

/// Behind older easy jobs, a request pays for the time that it makes the others wait.
#[test]
fn an_easy_request_behind_many_others_costs_work() {
    let mut bot = Bot::of_rate(80e6);
    let behind = |bot: &mut Bot, millis: u64, text: &str| {
        let wait = Duration::from_millis(millis);
        match bot.decide(text, &nobody(), |facts| facts.queue.wait = wait) {
            (Effect::Accept(..), _) => 0,
            (_, reply) => price_in(&reply),
        }
    };
    let waits = [0, 1000, 1500, 1600, 3000, 8000, 3_600_000];
    assert_eq!(waits.map(|millis| behind(&mut bot, millis, "cats")), [0, 0, 0, 19, 20, 21, 26]);
    assert_eq!(behind(&mut bot, 3_600_000, "m0ctane"), 0, "a hard request does not wait");
}

/// Whatever new askers take, with work or without, is neither price nor refusal for known ones and
/// friends.
#[test]
fn room_that_new_askers_fill_costs_known_ones_nothing() {
    let mut bot = Bot::of_rate(80e6);
    for text in ["*cafec0", "best 10m", "x0ct*cafe x0ct*cafd", "*qqqq", &format!("split {POINT} m0ctane")] {
        for paid in (0..100).map(|number| if number < 50 { 0 } else { MAX_BITS }) {
            bot.decide(text, &nobody(), |facts| facts.paid = paid);
        }
        assert_ne!(bot.price(text), Some(0), "{text}");
        for priority in [Priority::Known, Priority::Friend] {
            let (effect, reply) = bot.decide(text, &nobody(), |facts| facts.priority = priority);
            assert!(matches!(effect, Effect::Accept(..)), "{text}, {priority:?}: {reply:?}");
        }
    }
}

#[test]
fn a_new_asker_in_a_flood_gets_the_line_to_type_and_is_served_with_its_work() {
    let mut bot = Bot::of_rate(80e6);
    let crowded = |facts: &mut Facts<'_>| facts.is_crowded_out = true;
    let (effect, reply) = bot.decide("m0ctane", &nobody(), |facts| {
        crowded(facts);
        facts.page = Some("https://bot.example/");
    });
    assert_eq!(effect, Effect::Nothing);
    let text = reply.text;
    let (own, author) = (Npub([1; 32]), Npub([2; 32]));
    assert!(text.contains(&format!("\nnpubbot work {own} {author} 18\n")), "{text}");
    insta::assert_snapshot!(text);
    // Other messages are still answered.
    assert_eq!(bot.decide("help", &nobody(), crowded).1.topic, "help");
    let hard = bot.decide("m0ctanem0ctane", &nobody(), crowded);
    assert_eq!(hard.1.topic, "too-hard", "nobody works for nothing");
    let paid = bot.decide("m0ctane", &nobody(), |facts| (facts.is_crowded_out, facts.paid) = (true, LEAST_BITS));
    assert!(matches!(paid, (Effect::Accept(..), _)));
}

#[test]
fn a_line_of_work_changes_nothing_else_about_a_request() {
    let (own, author) = (Npub([1; 32]), Npub([2; 32]));
    let target = WorkTarget::new(&own, &author, WorkDay::of(NOW));
    let line: Work = target.search(8, 0, 1, &AtomicU64::new(0), &AtomicBool::new(false)).unwrap();
    for text in ["m0ctane", "cat dad", "surprise", &format!("split {POINT} m0ctane"), "ich hätte gern m0ct"] {
        for with in [format!("{text}\n{line}"), format!("{line}\n{text}"), format!("{text} {line}")] {
            assert_eq!(decide_for(&with, &nobody()), decide_for(text, &nobody()), "{with}");
            let request = read(&rumor(&with));
            assert_eq!(request.work(), Some(line));
            assert_eq!(crate::bot::asked(&rumor(&with)), crate::bot::asked(&rumor(text)), "the ticket is the same");
        }
    }
    assert!(line.bits(&own, &Npub(Asker([2; 32]).0), NOW) >= 8);
    insta::assert_snapshot!(say(&line.to_string(), &nobody()));
}
