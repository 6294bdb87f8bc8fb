//! Hashed keys are equal on all nodes of a store.

use super::{Member, Redis, body};
use std::time::Duration;
use tollgate_faults::clock::wait_until;
use tollgate_observe::metrics::Front;

const FILE: &str = "admin: {token: a-token-of-some-length}
limits: [{name: l, key: [user], rate: 1000/d}]
";

/// The hash of a user's key on this node.
fn hash(member: &Member, user: &str) -> String {
    assert_eq!(member.client(Front::Http).post("/v1/check", &body(user, "/")).status, 200);
    let top = top(member, "by=admitted");
    top["limits"][0]["keys"][0]["key"]["user"].as_str().unwrap_or_default().to_owned()
}

fn top(member: &Member, query: &str) -> serde_json::Value {
    let mut admin = member.client(Front::Admin);
    let token = "authorization: Bearer a-token-of-some-length";
    admin.send(format!("GET /v1/top?{query} HTTP/1.1\r\nhost: x\r\n{token}\r\n\r\n").as_bytes());
    admin.answer().json()
}

#[test]
fn top_keys_of_the_fleet_add_up_those_of_its_nodes() {
    let redis = Redis::start();
    let members = [(); 2].map(|()| Member::start(&redis, "deadline: 30s", FILE));
    let units = |member: &Member, scope: &str| {
        let top = top(member, &format!("by=admitted&window=1h&scope={scope}"));
        assert_eq!(top["scope"], scope);
        let key = &top["limits"][0]["keys"][0];
        (top["limits"][0]["units"].as_u64(), key["units"].as_u64(), key["error"].as_u64())
    };
    for member in &members {
        for user in ["ann", "ann", "bob"] {
            let answer = member.client(Front::Http).post("/v1/check", &body(user, "/"));
            assert_eq!(answer.status, 200);
        }
    }
    for member in &members {
        assert_eq!(units(member, "node"), (Some(3), Some(2), Some(0)));
        let adds_up = || units(member, "fleet") == (Some(6), Some(4), Some(0));
        assert!(wait_until(Duration::from_secs(30), adds_up), "{:?}", units(member, "fleet"));
        let nodes = top(member, "scope=fleet")["nodes"].as_array().unwrap().len();
        assert_eq!(nodes, 2);
    }
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
    // The nodes that know the secret, and a node that starts without it, agree on one secret.
    let third = Member::start(&redis, "deadline: 30s", FILE);
    assert!(wait_until(Duration::from_secs(30), || agree(&[first, second, &third])));
}
