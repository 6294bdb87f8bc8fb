use super::*;
use tollgate::ManualClock;

fn guard() -> (AddressThrottle, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    (AddressThrottle::per_minute(TRIES_PER_MINUTE, clock.clone()), clock)
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn an_address_waits_after_ten_tries() {
    let (guard, clock) = guard();
    let peer = address("192.0.2.1");
    for _ in 0..TRIES_PER_MINUTE {
        assert_eq!(guard.count_try(peer), None);
    }
    assert_eq!(guard.count_try(peer), Some(6_000_000));
    assert_eq!(guard.count_try(peer), Some(6_000_000), "waiting is not made longer");
    assert_eq!(guard.count_try(address("192.0.2.2")), None, "others do not wait");
    assert_eq!(guard.peek_wait_us(peer), Some(6_000_000));
    clock.elapse(Duration::from_secs(6));
    assert_eq!(guard.peek_wait_us(peer), None);
    assert_eq!(guard.count_try(peer), None, "it ends when it said");
    assert!(guard.count_try(peer).is_some());
    guard.clear(peer);
    assert_eq!(guard.count_try(peer), None, "the right token clears the count");
}

#[test]
fn all_addresses_of_one_network_count_together() {
    let (guard, _) = guard();
    for host in 0..TRIES_PER_MINUTE {
        assert_eq!(guard.count_try(address(&format!("2001:db8::{host:x}"))), None);
    }
    assert!(guard.count_try(address("2001:db8::ffff")).is_some());
    assert_eq!(guard.count_try(address("2001:db8:0:1::1")), None);
    let mapped = address("::ffff:192.0.2.7");
    (0..TRIES_PER_MINUTE).for_each(|_| assert_eq!(guard.count_try(mapped), None));
    assert!(guard.count_try(address("192.0.2.7")).is_some(), "one address in two forms");
}
