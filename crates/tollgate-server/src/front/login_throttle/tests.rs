use super::*;

const NOW_US: u64 = 1_700_000_000_000_000;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn an_address_waits_after_ten_tries() {
    let guard = LoginThrottle::new();
    let peer = address("192.0.2.1");
    for _ in 0..TRIES_PER_MINUTE {
        assert_eq!(guard.count_try(NOW_US, peer), None);
    }
    assert_eq!(guard.count_try(NOW_US, peer), Some(6_000_000));
    assert_eq!(guard.count_try(NOW_US, peer), Some(6_000_000), "waiting is not made longer");
    assert_eq!(guard.count_try(NOW_US, address("192.0.2.2")), None, "others do not wait");
    assert_eq!(guard.count_try(NOW_US + 6_000_000, peer), None, "it ends when it said");
    assert!(guard.count_try(NOW_US + 6_000_000, peer).is_some());
    guard.clear(peer);
    assert_eq!(guard.count_try(NOW_US + 6_000_000, peer), None, "the right token clears the count");
}

#[test]
fn all_addresses_of_one_network_count_together() {
    let guard = LoginThrottle::new();
    for host in 0..TRIES_PER_MINUTE {
        assert_eq!(guard.count_try(NOW_US, address(&format!("2001:db8::{host:x}"))), None);
    }
    assert!(guard.count_try(NOW_US, address("2001:db8::ffff")).is_some());
    assert_eq!(guard.count_try(NOW_US, address("2001:db8:0:1::1")), None);
    let mapped = address("::ffff:192.0.2.7");
    (0..TRIES_PER_MINUTE).for_each(|_| assert_eq!(guard.count_try(NOW_US, mapped), None));
    assert!(guard.count_try(NOW_US, address("192.0.2.7")).is_some(), "one address in two forms");
}
