//! Hashes of keys: the same on all nodes of a store.

use super::{Member, Redis, body};
use std::time::Duration;
use tollgate_faults::clock::wait_until;
use tollgate_server::observe::metrics::Front;

const FILE: &str = "admin: {token: a-token-of-some-length}
limits: [{name: l, key: [user], rate: 1000/d}]
";

/// The hash of a user's key on this node.
fn hash(member: &Member, user: &str) -> String {
    assert_eq!(member.client(Front::Http).post("/v1/check", &body(user, "/")).status, 200);
    let mut admin = member.client(Front::Admin);
    let token = "authorization: Bearer a-token-of-some-length";
    admin
        .send(format!("GET /v1/top?by=admitted HTTP/1.1\r\nhost: x\r\n{token}\r\n\r\n").as_bytes());
    let top = admin.answer().json();
    top["limits"][0]["keys"][0]["key"]["user"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn nodes_of_a_store_hash_alike_and_agree_again_when_the_store_lost_the_secret() {
    let redis = Redis::start();
    let members = [(); 2].map(|()| Member::start(&redis, "deadline: 30s", FILE));
    let agree = |members: &[&Member]| {
        let hashes: Vec<String> = members.iter().map(|member| hash(member, "ann")).collect();
        hashes.iter().all(|one| one.starts_with('~') && *one == hashes[0])
    };
    let [first, second] = &members;
    assert!(wait_until(Duration::from_secs(30), || agree(&[first, second])));
    redis::cmd("FLUSHALL").exec(&mut redis.connection().unwrap()).unwrap();
    // The nodes that know it, and one that starts without it, agree on one.
    let third = Member::start(&redis, "deadline: 30s", FILE);
    assert!(wait_until(Duration::from_secs(30), || agree(&[first, second, &third])));
}
