//! Limits of the policy, applied to descriptors.

use super::response::Kind;
use super::*;
use serde_json::Value;

const FILE: &str = "
headers: [draft-11]
limits:
  - {name: per-user, key: [domain, descriptor.user], rate: 5/365d, algorithm: fixed-window}
  - {name: paths, match: {descriptor.path: '/api/*'}, rate: 100/h, algorithm: gcra}
  - {name: watched, key: [descriptor.user], rate: 1/h, mode: shadow}
  - {name: secret, key: [descriptor.pin], rate: 1/365d, algorithm: fixed-window, disclose: false}
  - {name: tokens, key: [descriptor.account], rate: 10/365d, algorithm: fixed-window, debt: true}
";

#[test]
fn statuses_are_in_order_and_filled() {
    let node = Node::start(FILE, &[]);
    let all = vec![user("ann"), descriptor(&[("other", "x")]), descriptor(&[("path", "/api/x")])];
    let response = node.ask("edge", all);
    assert_eq!(response.overall_code, OK);
    assert_eq!(left(&response), [(true, 4), (true, 0), (true, 99)]);
    let status = &response.statuses[0];
    let limit = status.current_limit.as_ref().unwrap();
    assert_eq!((limit.requests_per_unit, limit.unit, &*limit.name), (5, YEAR, "per-user"));
    let seconds = status.duration_until_reset.unwrap().seconds;
    assert!((1..=31_536_000).contains(&seconds) && status.duration_until_reset.unwrap().nanos == 0);
    assert!(response.statuses[1].current_limit.is_none(), "no limit applies to it");
    let limit = response.statuses[2].current_limit.as_ref().unwrap();
    assert_eq!((limit.requests_per_unit, limit.unit), (100, 3), "an hour is a unit");
    // A hundredth of an hour is 36 s, exactly; less than that is left, and it is rounded up.
    assert_eq!(response.statuses[2].duration_until_reset.unwrap().seconds, 36);
    let policy = header(&response, "ratelimit-policy").unwrap();
    assert_eq!(policy, r#""per-user";q=5;w=31536000, "paths";q=100;w=3600"#);
    assert!(header(&response, "retry-after").is_none() && response.raw_body.is_empty());
}

#[test]
fn a_refusal_says_why_and_charges_nobody() {
    let node = Node::start(FILE, &[]);
    let response = node.ask("edge", vec![user("bob"), hits(user("ann"), 6)]);
    assert_eq!(response.overall_code, OVER_LIMIT);
    assert_eq!(left(&response), [(true, 5), (false, 5)], "all or nothing");
    assert!(header(&response, "retry-after").is_none(), "no wait can help");
    let response = node.ask("edge", vec![hits(user("ann"), 5)]);
    assert_eq!(left(&response), [(true, 0)]);
    let response = node.ask("edge", vec![user("ann")]);
    assert_eq!(left(&response), [(false, 0)]);
    assert_eq!(header(&response, "content-type"), Some("application/problem+json"));
    assert!(header(&response, "retry-after").unwrap().parse::<u64>().unwrap() > 0);
    let body: Value = serde_json::from_slice(&response.raw_body).unwrap();
    assert_eq!((&body["status"], &body["violated-policies"][0]), (&429.into(), &"per-user".into()));
    let metadata = response.dynamic_metadata.unwrap();
    let Some(Kind::Struct(ours)) = metadata.get("tollgate") else { panic!("{metadata:?}") };
    assert_eq!(ours.get("limit"), Some(&Kind::Text("per-user".into())));
    assert_eq!(ours.get("allowed"), Some(&Kind::Bool(false)));
    assert_eq!(left(&node.ask("other", vec![user("ann")])), [(true, 4)], "another domain");
}

/// The limit in the metadata is the one in the headers and the body: of equals, the first.
#[test]
fn one_limit_decides_wherever_it_is_named() {
    let file = "
headers: [x-ratelimit-delta]
limits:
  - {name: first, key: [descriptor.user], rate: 2/365d, algorithm: fixed-window}
  - {name: second, key: [descriptor.user], rate: 2/365d, algorithm: fixed-window}
  - {name: strict, key: [descriptor.pin], rate: 1/h, algorithm: gcra, penalty: {after: 1, block: 2h}}
";
    let node = Node::start(file, &[]);
    let named = |response: &RateLimitResponse| {
        let metadata = response.dynamic_metadata.clone().unwrap();
        let Some(Kind::Struct(ours)) = metadata.get("tollgate") else { panic!("{metadata:?}") };
        ours.get("limit").cloned()
    };
    for allowed in [OK, OK, OVER_LIMIT] {
        let response = node.ask("edge", vec![user("ann")]);
        assert_eq!(response.overall_code, allowed);
        assert_eq!(named(&response), Some(Kind::Text("first".into())));
        let limit = response.statuses[0].current_limit.as_ref().unwrap();
        assert_eq!(limit.name, "first");
    }
    let pin = || vec![descriptor(&[("pin", "1")])];
    node.ask("edge", pin());
    let response = node.ask("edge", pin());
    assert_eq!(response.statuses[0].duration_until_reset.unwrap().seconds, 7_200);
    assert_eq!(header(&response, "x-ratelimit-reset"), Some("7200"));
    assert_eq!(header(&response, "retry-after"), Some("7200"));
    let body: Value = serde_json::from_slice(&response.raw_body).unwrap();
    let uri = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected";
    assert_eq!((&body["type"], &body["retry_after"]), (&uri.into(), &7_200.into()));
    assert_eq!((&body["error"], &body["limit"]), (&"rate_limit_exceeded".into(), &1.into()));
    assert_eq!(body["window"], 3_600);
}

#[test]
fn addends_are_those_of_the_descriptor_else_of_the_request_else_one() {
    let node = Node::start(FILE, &[]);
    let ask = |hits_addend, descriptor| {
        let mut all = request("edge", vec![descriptor]);
        all.hits_addend = hits_addend;
        left(&node.ask_all(&all).unwrap())[0]
    };
    assert_eq!(ask(0, user("ann")), (true, 4), "0 of the request is 1");
    assert_eq!(ask(2, user("ann")), (true, 2));
    assert_eq!(ask(2, hits(user("ann"), 1)), (true, 1));
    assert_eq!(ask(2, hits(user("ann"), 0)), (true, 1), "0 of the descriptor looks");
    assert_eq!(ask(0, hits(user("ann"), u64::MAX)), (false, 1));
    assert_eq!(ask(0, user("ann")), (true, 0));
    assert_eq!(ask(0, hits(user("ann"), 0)), (false, 0), "for one there is no room");
}

#[test]
fn equal_descriptors_are_one_charge() {
    let node = Node::start(FILE, &[]);
    let response = node.ask("edge", vec![user("ann"), user("ann")]);
    assert_eq!(left(&response), [(true, 3), (true, 3)]);
}

#[test]
fn negative_hits_are_given_back_and_no_more_than_were_taken() {
    let node = Node::start(FILE, &[]);
    assert_eq!(left(&node.ask("edge", vec![hits(user("ann"), 3)])), [(true, 2)]);
    let refund = |value| {
        let mut refund = hits(user("ann"), value);
        refund.is_negative_hits = true;
        refund
    };
    assert_eq!(left(&node.ask("edge", vec![refund(1)])), [(true, 3)]);
    assert_eq!(left(&node.ask("edge", vec![refund(1), user("bob")])), [(true, 4), (true, 4)]);
    assert_eq!(left(&node.ask("edge", vec![refund(9)])), [(true, 5)]);
}

#[test]
fn a_limit_that_comes_with_a_descriptor_counts_alone() {
    let node = Node::start(FILE, &[]);
    let ask = |descriptor| node.ask("edge", vec![descriptor]);
    let response = ask(own(user("ann"), 2, YEAR));
    assert_eq!(left(&response), [(true, 1)]);
    let limit = response.statuses[0].current_limit.clone().unwrap();
    assert_eq!((limit.requests_per_unit, limit.unit, &*limit.name), (2, YEAR, ""));
    assert_eq!(left(&ask(own(user("ann"), 2, YEAR))), [(true, 0)]);
    assert_eq!(left(&ask(own(user("ann"), 2, YEAR))), [(false, 0)]);
    assert_eq!(left(&ask(own(user("bob"), 2, YEAR))), [(true, 1)], "of its own key");
    assert_eq!(left(&ask(user("ann"))), [(true, 4)], "the policy's was not asked");
    for unit in [0, 7, 99] {
        let wrong = node.ask_all(&request("edge", vec![own(user("ann"), 1, unit)])).unwrap_err();
        assert_eq!(wrong.0, 3, "{wrong:?}");
    }
}

#[test]
fn what_is_not_disclosed_is_not_shown() {
    let node = Node::start(FILE, &[]);
    let ask = || node.ask("edge", vec![descriptor(&[("pin", "1")])]);
    let response = ask();
    assert_eq!(response.overall_code, OK);
    assert!(response.statuses[0].current_limit.is_none());
    let response = ask();
    assert_eq!((response.overall_code, response.statuses[0].code), (OVER_LIMIT, OVER_LIMIT));
    assert!(header(&response, "ratelimit").is_none() && header(&response, "retry-after").is_some());
    assert!(!String::from_utf8_lossy(&response.raw_body).contains("secret"));
}

#[test]
fn a_bill_at_the_end_binds() {
    let node = Node::start(FILE, &[]);
    let account = || descriptor(&[("account", "a")]);
    let look = || node.ask("edge", vec![hits(account(), 0)]).overall_code;
    assert_eq!(look(), OK);
    assert_eq!(node.ask("edge", vec![hits(account(), 25)]).overall_code, OK, "something was left");
    assert_eq!(look(), OVER_LIMIT);
    assert_eq!(node.ask("edge", vec![hits(account(), 5)]).overall_code, OVER_LIMIT);
    assert_eq!(look(), OVER_LIMIT);
}

#[test]
fn descriptors_weigh_and_name_keys_as_requests_do() {
    let node = Node::start(
        "limits: [{name: units, key: {first_of: [descriptor.user, descriptor.ip]}, rate: 100/365d, algorithm: fixed-window, \
         cost: [{match: {descriptor.path: '/embed/*'}, units: 10}]}]",
        &[],
    );
    let one = |entries: &[(&str, &str)]| left(&node.ask("edge", vec![descriptor(entries)]));
    assert_eq!(one(&[("user", "a"), ("path", "/read")]), [(true, 99)]);
    assert_eq!(one(&[("user", "a"), ("path", "/embed/x"), ("ip", "a")]), [(true, 89)]);
    assert_eq!(one(&[("ip", "a"), ("path", "/embed/x")]), [(true, 90)], "a space of its own");
    assert_eq!(one(&[("path", "/embed/x")]), [(true, 0)], "no key is complete");
}
