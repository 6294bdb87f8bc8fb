use super::{CLOSED_MIN, MemoryTrimTrigger, SETTLED_TICKS};

/// The ticks at which memory is trimmed.
fn given_back(watch: &mut MemoryTrimTrigger, open: impl IntoIterator<Item = u64>) -> Vec<usize> {
    open.into_iter().enumerate().filter(|(_, open)| watch.tick(*open)).map(|(at, _)| at).collect()
}

#[test]
fn a_crowd_that_has_gone_is_followed_by_one_trim() {
    let mut watch = MemoryTrimTrigger::default();
    let settled = SETTLED_TICKS as usize;
    let looks = [3_000].into_iter().chain([0; 100]);
    assert_eq!(given_back(&mut watch, looks), [settled]);
    // Half of the connections close, then the rest.
    let looks = [3_000].into_iter().chain([1_500; 100]).chain([10; 100]);
    assert_eq!(given_back(&mut watch, looks), [settled, 100 + settled]);
}

#[test]
fn few_connections_and_connections_that_come_back_are_left_in_peace() {
    let mut watch = MemoryTrimTrigger::default();
    assert!(given_back(&mut watch, [CLOSED_MIN - 1].into_iter().chain([0; 100])).is_empty());
    // A third of the connections close, or closed ones are replaced within the second.
    assert!(given_back(&mut watch, [3_000].into_iter().chain([2_000; 100])).is_empty());
    let waves = (0..1_000).map(|look| if look % 15 == 0 { 3_000 } else { 0 });
    assert!(given_back(&mut MemoryTrimTrigger::default(), waves).is_empty());
}
