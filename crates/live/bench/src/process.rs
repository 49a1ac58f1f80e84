//! What a process costs, as the kernel counts it.

use std::fs::read_to_string;

/// CPU time and memory of a process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// CPU time so far, in seconds.
    pub cpu_s: f64,
    /// Resident memory now, in MiB.
    pub memory_mib: f64,
    /// Most resident memory so far, in MiB.
    pub peak_mib: f64,
}

/// Ticks of a second in `/proc/PID/stat`: fixed for user space on every platform with Linux.
const TICKS: f64 = 100.0;

/// What a process has cost; nothing if it has ended.
pub fn cost(pid: Option<u32>) -> Cost {
    let Some(pid) = pid else { return Cost::default() };
    let stat = read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name, in parentheses, may hold spaces.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = fields.split_whitespace().skip(11).take(2);
    let cpu_s = ticks.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / TICKS;
    let status = read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mib = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kib.unwrap_or_default() / 1_024.0
    };
    Cost { cpu_s, memory_mib: mib("VmRSS:"), peak_mib: mib("VmHWM:") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_works_costs_time_and_memory() {
        let begun = std::time::Instant::now();
        let mut sum = 0_u64;
        while begun.elapsed().as_millis() < 100 {
            sum = std::hint::black_box(sum + 1);
        }
        let own = cost(Some(std::process::id()));
        assert!(own.cpu_s > 0.0 && own.memory_mib > 1.0 && own.peak_mib >= own.memory_mib);
        assert_eq!(cost(None).cpu_s, 0.0);
    }
}
