//! Addresses that cannot be bound.

use tollgate_net::Listener;
use tollgate_observe::metrics::Front;

#[test]
fn a_taken_address_names_the_field_and_the_fix() {
    let taken = Listener::bind(Front::Http, "127.0.0.1:0".parse().unwrap()).unwrap();
    let address = taken.address();
    assert_ne!(address.port(), 0);
    let error = Listener::bind(Front::Admin, address).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&address.to_string()), "{text}");
    assert!(text.contains("`listen.admin`") && text.contains("in use"), "{text}");
    assert!(text.contains("stop that process") && text.contains("port 0"), "{text}");
    assert_eq!((error.front, error.address), (Front::Admin, address));
    drop(taken);
    Listener::bind(Front::Admin, address).expect("free again");
}

#[test]
fn a_foreign_address_says_so() {
    let error = Listener::bind(Front::Http, "192.0.2.1:8081".parse().unwrap()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("`listen.http`") && text.contains("not an address of this machine"),
        "{text}"
    );
}
