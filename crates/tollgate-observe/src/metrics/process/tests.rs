use super::*;

#[test]
fn the_name_of_the_program_does_not_shift_the_fields() {
    let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 3 0 12345 9 9";
    assert_eq!(ticks(stat, USER_TIME), Some(Duration::from_millis(2_500)));
    assert_eq!(ticks(stat, SYSTEM_TIME), Some(Duration::from_millis(500)));
    assert_eq!(ticks(stat, START_TIME), Some(Duration::from_millis(123_450)));
    assert_eq!(ticks("7 (a) S", USER_TIME), None);
}

#[test]
fn what_is_unlimited_or_missing_is_left_out() {
    assert_eq!(field("VmRSS:\t  84 kB\nThreads:\t3\n", "Threads:"), Some(3));
    assert_eq!(
        field("Max open files            unlimited    unlimited  files", "Max open files"),
        None
    );
    assert_eq!(field("", "VmRSS:"), None);
}

#[test]
fn this_process_has_all_of_them() {
    let read = Process::read();
    assert!(read.threads.is_some_and(|threads| threads >= 1), "{read:?}");
    assert!(read.resident_bytes.is_some_and(|bytes| bytes > 100_000), "{read:?}");
    assert!(read.virtual_bytes >= read.resident_bytes, "{read:?}");
    assert!(read.open_fds.is_some_and(|count| count >= 1), "{read:?}");
    assert!(read.start.is_some_and(|start| start > Duration::from_secs(1_600_000_000)), "{read:?}");
    assert!(read.cpu.is_some(), "{read:?}");
}
