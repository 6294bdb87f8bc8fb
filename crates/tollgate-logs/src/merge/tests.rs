use super::*;
use crate::format::find_format;
use std::fs;

/// Writes CSV files with lines of `(time in seconds, name)`.
fn files(name: &str, contents: &[Vec<(u64, u64)>]) -> Vec<PathBuf> {
    let folder = std::env::temp_dir().join(format!("tollgate-logs-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = |(number, lines): (usize, &Vec<(u64, u64)>)| {
        let path = folder.join(format!("{number}.csv"));
        let text: String = lines.iter().map(|(time, user)| format!("{time},u{user}\n")).collect();
        fs::write(&path, format!("time,user\n{text}")).unwrap();
        path
    };
    contents.iter().enumerate().map(file).collect()
}

/// Returns all requests in the order in which they come, and the statistics.
fn read(paths: &[PathBuf]) -> (Vec<(u64, String)>, InputStats) {
    let options = ReadOptions::default();
    let mut logs = Logs::open(paths, find_format("csv"), options, &[Field::User]).unwrap();
    let mut all = Vec::new();
    while let Some(record) = logs.next_record().unwrap() {
        all.push((record.time_us() / 1_000_000, record.value(Field::User).to_owned()));
    }
    let stats = logs.stats().clone();
    fs::remove_dir_all(paths[0].parent().unwrap()).unwrap();
    (all, stats)
}

fn random(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % below
}

#[test]
fn requests_come_in_the_order_of_their_times_and_none_is_lost() {
    let mut seed = 1;
    for (round, count) in [1, 2, 7].into_iter().enumerate() {
        let mut contents = vec![Vec::new(); count];
        let mut expected = Vec::new();
        for n in 0..20_000_u64 {
            // Lines are up to some seconds out of place, and later files begin later.
            let file = random(&mut seed, count as u64) as usize;
            let time = 1_700_000_000 + n / 10 + random(&mut seed, 30) + 100 * file as u64;
            contents[file].push((time, n));
            expected.push((time, format!("u{n}")));
        }
        let (found, stats) = read(&files(&format!("order-{round}"), &contents));
        assert!(found.is_sorted_by_key(|(time, _)| *time), "{count} files");
        let sorted = |mut all: Vec<(u64, String)>| {
            all.sort();
            all
        };
        assert_eq!(sorted(found), sorted(expected));
        assert_eq!((stats.requests, stats.late, stats.unreadable), (20_000, 0, 0));
    }
}

#[test]
fn a_line_that_is_too_late_keeps_its_time_and_is_counted() {
    let mut lines: Vec<(u64, u64)> = (0..20_000).map(|n| (1_700_000_000 + n, n)).collect();
    lines.push((1_700_000_005, 77));
    let (found, stats) = read(&files("late", &[lines]));
    assert_eq!(found.len(), 20_001);
    assert_eq!((stats.late, stats.jumps), (1, 1));
    assert!(stats.late_us_max > 10_000_000_000, "{}", stats.late_us_max);
    assert!(found.contains(&(1_700_000_005, "u77".into())));
}
