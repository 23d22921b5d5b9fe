//! Compares the canary hits of an honest processor with their expected number. A kernel that
//! missed more than about 5 % of them would be taken out of use by the slow test of
//! `run::health`.

use crate::job::JobId;
use crate::pattern::Pattern;
use crate::scheduler::plan::pass::Pass;
use crate::scheduler::run::verify::{CollectedLaunch, verify};
use crate::search::{self, DeviceChoice, DeviceId, Launch, SearchOptions};
use crate::vault::Vault;
use std::sync::Arc;

/// Expected hits of a canary. With this many the random error is 2.2 %.
const HITS: f64 = 2_000.0;

#[test]
fn an_honest_processor_finds_its_canary_as_often_as_expected_also_where_launches_stop_early() {
    let vault = Vault::without_identity().unwrap();
    let options = SearchOptions { devices: DeviceChoice::Cpu, threads: Some(1), ..SearchOptions::default() };
    let mut searcher = search::open(DeviceId::Cpu, &options).unwrap();
    // If the only job's pattern begins or ends with the canary, every hit of the job is also a hit
    // of the canary, and no launch stops early.
    for (jobs, stops_early) in [(&["m0ct"][..], false), (&["m0ct", "al7c"], true), (&["*cafe"], false)] {
        let jobs: Vec<Pattern> = jobs.iter().map(|text| text.parse().unwrap()).collect();
        let plentiful = jobs.iter().map(|pattern| (JobId(1), pattern));
        let canary: Pattern = "stu".parse().unwrap();
        let pass = Arc::new(Pass::new(std::iter::empty(), plentiful, None, canary));
        let (mut expected, mut found, mut cut_short) = (0.0, 0, 0);
        while expected < HITS {
            let starts = vault.open_starts(searcher.starts(), None).unwrap();
            let points = starts.iter().map(|&(_, point)| point).collect();
            let patterns = Arc::clone(&pass.patterns);
            searcher.submit(Launch { starts: points, patterns, remaining: pass.remaining() }).unwrap();
            let report = searcher.collect().unwrap();
            expected += report.candidates as f64 * pass.canary_chance;
            cut_short += u32::from(report.is_cut_short);
            let ids: Vec<_> = starts.iter().map(|&(id, _)| id).collect();
            found += verify(&CollectedLaunch { pass: Arc::clone(&pass), starts, report }).canary_found;
            vault.discard(&ids);
        }
        println!("{jobs:?}: {found} of {expected:.0}, {cut_short} launches were cut short");
        // Five standard deviations: by chance, one run in two million fails.
        assert!((found as f64 - expected).abs() < 5.0 * expected.sqrt(), "{jobs:?}: {found} of {expected}");
        assert_eq!(cut_short > 10, stops_early, "{jobs:?}: {cut_short}");
    }
}
