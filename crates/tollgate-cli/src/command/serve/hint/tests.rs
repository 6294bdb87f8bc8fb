use super::{reachable, text};
use tollgate_observe::metrics::Front;

#[test]
fn an_address_for_everyone_is_asked_at_home() {
    let shown = |text: &str| reachable(text.parse().unwrap()).to_string();
    assert_eq!(shown("0.0.0.0:8081"), "127.0.0.1:8081");
    assert_eq!(shown("[::]:8081"), "[::1]:8081");
    assert_eq!(shown("10.0.0.1:8081"), "10.0.0.1:8081");
}

#[test]
fn without_the_check_api_there_is_nothing_to_try() {
    let admin = (Front::Admin, "127.0.0.1:8090".parse().unwrap());
    assert_eq!(text(&[admin]), "");
}
