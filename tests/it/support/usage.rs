//! Processor time and memory of a process; of a bot, those of its network process.

use super::vault::network_of;
use std::fs;

/// A number in `/proc/PID/status`, such as `VmRSS` or `Threads`. Memory is in KiB.
pub fn status(pid: u32, name: &str) -> u64 {
    let pid = network_of(pid);
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let number = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    number.split_whitespace().next().unwrap().parse().unwrap()
}

/// Processor time in seconds, and resident memory in bytes, of a process.
pub fn of(pid: u32) -> (f64, u64) {
    let pid = network_of(pid);
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    (ticks / 100.0, status(pid, "VmRSS") * 1024)
}

/// Processor time of a process in seconds, without its search, which runs at low priority.
pub fn seconds_beside_search(pid: u32) -> f64 {
    let (pid, mut nanoseconds) = (network_of(pid), 0);
    for thread in fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        let read = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        if !read("comm").starts_with("search") {
            nanoseconds += read("schedstat").split(' ').next().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    nanoseconds as f64 / 1e9
}
