//! Tests of the hours against a clock that is read minute by minute.

use super::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// 2026-03-28 00:00 UTC, the day before Europe's clocks go forward.
const BEFORE_SPRING: u64 = 1_774_656_000;
/// 2026-10-24 00:00 UTC, the day before Europe's clocks go back.
const BEFORE_AUTUMN: u64 = 1_792_800_000;
/// Zones with and without summer time, one that shifts by half an hour, and one that left out a
/// day.
const ZONES: [&str; 6] =
    ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"];

fn hours(spans: &str, zone: &str) -> Hours {
    Hours::parse(spans, zone).unwrap()
}

/// The minutes of a day within the spans, each counted from its beginning to its end.
fn counted(spans: &[(u16, u16)]) -> Vec<bool> {
    let mut minutes = vec![false; usize::from(MINUTES_A_DAY)];
    for &(from, to) in spans {
        let mut now = from;
        while now != to {
            minutes[usize::from(now)] = true;
            now = if now + 1 == MINUTES_A_DAY && to != MINUTES_A_DAY { 0 } else { now + 1 };
        }
    }
    minutes
}

/// The minute of the day that the clock on the wall of a zone shows, read as text.
fn on_the_wall(zone: &TimeZone, at: u64) -> usize {
    let text = Timestamp::from_second(at as i64).unwrap().to_zoned(zone.clone()).strftime("%H:%M").to_string();
    text[..2].parse::<usize>().unwrap() * 60 + text[3..].parse::<usize>().unwrap()
}

fn text(spans: &[(u16, u16)]) -> String {
    let one = |(from, to): &(u16, u16)| format!("{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60);
    spans.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Compares all answers of [`Hours`] with the wall clock, minute by minute over four days.
fn compare(spans: &[(u16, u16)], zone: &str, start: u64) {
    let hours = hours(&text(spans), zone);
    let context = || format!("{} in {zone} from {start}", text(spans));
    let (day, wall) = (counted(spans), jiff::tz::db().get(zone).unwrap());
    let minutes: Vec<bool> = (0..4 * 1440).map(|minute| day[on_the_wall(&wall, start + 60 * minute)]).collect();
    let change_after = |minute: usize| (minute + 1..minutes.len()).find(|&later| minutes[later] != minutes[minute]);
    for (minute, is_open) in minutes.iter().enumerate() {
        let at = start + 60 * minute as u64;
        assert_eq!(hours.contain(at), *is_open, "{} at {at}", context());
        assert_eq!(hours.contain(at + 59), *is_open, "{} at {at} and 59 s", context());
    }
    for minute in (0..2 * 1440).step_by(97) {
        let at = start + 60 * minute as u64;
        let change =
            change_after(minute).map(|later| start + 60 * later as u64).filter(|&later| later <= at + 2 * 86_400);
        assert_eq!(hours.next_change(at), change, "{} after {at}", context());
        let open = minutes[minute..].iter().filter(|&&is_open| is_open).count() as u64 * 60;
        assert_eq!(hours.between(at, start + 4 * 86_400), open, "{} from {at}", context());
        // One hour of search must end with the sixtieth open minute that is counted.
        let calendar = hours.calendar(at);
        let opens = (minute..minutes.len()).find(|&minute| minutes[minute]);
        if let Some(opens) = opens.filter(|opens| opens - minute < 1440) {
            assert_eq!(calendar.wait().as_secs(), 60 * (opens - minute) as u64, "{} at {at}", context());
            let mut counted = 0;
            let done = (opens..minutes.len()).find(|&minute| {
                counted += u64::from(minutes[minute]);
                counted == 60
            });
            if let Some(done) = done {
                let took = calendar.within(Duration::from_secs(3600)).as_secs();
                assert_eq!(took, 60 * (done + 1 - opens) as u64, "{} at {at}", context());
            }
        }
    }
}

#[test]
fn hours_are_those_of_the_clock_on_the_wall() {
    let edges = [
        vec![(1320, 420)],
        vec![(0, 1440)],
        vec![(0, 1)],
        vec![(1439, 1440)],
        vec![(1439, 0)],
        vec![(1439, 1)],
        vec![(1, 1439)],
        vec![(135, 165)],
        vec![(120, 180)],
        vec![(150, 120)],
        // 02:30, which the clocks of some zones jump over in spring.
        vec![(150, 700)],
        vec![(700, 150)],
        vec![(0, 720), (720, 1440)],
        vec![(0, 720), (600, 1000), (1320, 30)],
    ];
    for spans in edges {
        for zone in ZONES {
            for start in [BEFORE_SPRING, BEFORE_AUTUMN] {
                compare(&spans, zone, start);
            }
        }
        // 2011-12-29: the day before the one that Samoa left out.
        compare(&spans, "Pacific/Apia", 1_325_116_800);
    }
}

#[test]
fn random_hours_are_those_of_the_clock_on_the_wall() {
    let seed = std::env::var("NPUBBOT_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random);
    println!("NPUBBOT_TEST_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..60 {
        let mut span = || {
            let (from, to) = (random.random_range(0..1440u16), random.random_range(0..=1440u16));
            if from == to { (from, (from + 1) % 1440) } else { (from, to) }
        };
        let spans: Vec<(u16, u16)> = (0..3).map(|_| span()).take(1 + usize::from(seed.is_multiple_of(3)) * 2).collect();
        let zone = ZONES[random.random_range(0..ZONES.len())];
        let start = [BEFORE_SPRING, BEFORE_AUTUMN, 1_700_000_000 / 60 * 60][random.random_range(0..3)];
        compare(&spans, zone, start + 60 * random.random_range(0..1440));
    }
}

#[test]
fn a_mean_time_is_that_of_many_searches_in_turn() {
    let night = hours("22:00-07:00", "Europe/Berlin");
    for start in [BEFORE_SPRING, BEFORE_SPRING + 12 * 3600, BEFORE_AUTUMN] {
        let calendar = night.calendar(start);
        for mean in [0u64, 60, 3600, 9 * 3600, 30 * 3600] {
            // The quantiles of an exponential distribution, each put on the calendar.
            const STEPS: u32 = 20_000;
            let quantile = |step: u32| -(1.0 - (f64::from(step) + 0.5) / f64::from(STEPS)).ln() * mean as f64;
            let sum: f64 =
                (0..STEPS).map(|step| calendar.within(Duration::from_secs_f64(quantile(step))).as_secs_f64()).sum();
            let (told, counted) = (calendar.mean(Duration::from_secs(mean)).as_secs_f64(), sum / f64::from(STEPS));
            assert!((told - counted).abs() <= 0.01 * counted + 1.0, "{mean}: {told} is told, {counted} counted");
        }
    }
    let always = hours("00:00-24:00", "UTC");
    assert_eq!(always.calendar(BEFORE_SPRING).mean(Duration::from_secs(77)), Duration::from_secs(77));
    assert_eq!(always.calendar(BEFORE_SPRING).within(Duration::MAX).as_secs_f64(), 1e15, "nothing overflows");
}

#[test]
fn spans_that_are_none_and_zones_that_are_none_are_refused() {
    for text in ["", "22:00", "22:00-22:00", "24:00-07:00", "25:00-07:00", "22:60-07:00", "22:00-07:0", "-", "a-b"] {
        assert!(Hours::parse(text, "UTC").is_err(), "{text}");
    }
    for text in ["22-07", "+2:00-07:00", "22:00-07:00,", "22:00-07:00 08:00-09:00", "00:00-00:00", "022:00-07:00"] {
        assert!(Hours::parse(text, "UTC").is_err(), "{text}");
    }
    let many = |count| vec!["00:00-01:00"; count].join(",");
    assert!(Hours::parse(&many(MAX_SPANS), "UTC").is_ok() && Hours::parse(&many(MAX_SPANS + 1), "UTC").is_err());
    for text in ["22:00-07:00", " 7:30 - 9:00 ,22:00-24:00", "00:00-24:00", "23:59-00:00"] {
        assert!(Hours::parse(text, "UTC").is_ok(), "{text}");
    }
    let wrong = Hours::parse("22:00-07:00", "Europe/Atlantis").unwrap_err();
    assert!(wrong.contains("Europe/Atlantis") && wrong.contains("Europe/Berlin"), "{wrong}");
    assert!(Hours::parse("22:00-07:00", "").is_ok(), "every system has a time");
}

#[test]
fn times_of_day_name_their_zone() {
    let hours = hours("22:00-07:00", "Europe/Berlin");
    assert_eq!(hours.local_time(BEFORE_SPRING), "01:00 CET");
    assert_eq!(hours.local_time(BEFORE_SPRING + 2 * 86_400), "02:00 CEST");
    assert_eq!(hours.local_time(u64::MAX), "", "a clock that is far off stops nothing");
    assert!(hours.contain(u64::MAX) && hours.next_change(u64::MAX).is_none());
}
