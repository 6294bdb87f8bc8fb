//! Forward-auth when the fleet has no slot left.

use super::{TRUSTING, ask};
use crate::http::serve;

#[test]
fn a_shed_request_is_denied_with_503_or_the_status_that_the_proxy_asks_for() {
    let served = serve(&format!("{TRUSTING}shed: {{fleet: {{capacity: 1, assume: 1h}}}}\n"));
    let lines = "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-user-id: 1\r\n";
    assert_eq!(ask(&served, "GET", "", lines).status, 200);
    for (parameters, status) in [("", 503), ("?deny_status=403", 403), ("?deny_status=429", 429)] {
        let shed = ask(&served, "GET", parameters, lines);
        assert_eq!(shed.status, status, "{parameters}");
        assert_eq!(shed.field("x-tollgate-decision"), Some("deny"));
        assert_eq!(shed.field("x-tollgate-source"), Some("shed"));
        let wait_s: u64 = shed.field("retry-after").unwrap().parse().unwrap();
        assert!((1..=3).contains(&wait_s), "{wait_s}");
        assert_eq!(shed.body.contains("#temporary-reduced-capacity"), status == 503);
    }
    let left = ask(&served, "GET", "?policy=per-user", lines);
    assert_eq!(left.status, 503, "the fleet counts requests, whatever limits are asked for");
}
