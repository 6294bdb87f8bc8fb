//! Tokens that do not verify, behind a proxy.

use super::{GET, ask};
use crate::http::serve;
use std::sync::Arc;
use tollgate_tower::Verifier;

const SECRET: &[u8] = b"a secret of thirty-two bytes, ok";
/// Tokens signed with HS256 for `sub` 1. The second has another secret; the third expired in 1970.
const TOKENS: [&str; 3] = [
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.CYnEalFQWpOuk53mMP3OBwA4ZNIYiS9mDmIlro0Zm68",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.VEkMVvgkm_YuDnwSjv-0mxeCmOskVMzaDOIzwQ16G8E",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIiwiZXhwIjoxfQ.r6oumDdhZ1Soo89aEjlkN3OFiRgxenctumB89UE2zrg",
];

/// Proxies forward few statuses and hardly any body, so a header names the reason.
#[test]
fn a_token_that_does_not_verify_is_denied_with_its_reason() {
    let file = "trusted_proxies: [127.0.0.0/8]\njwt: {keys: secret, algorithms: [HS256]}\nlimits: [{name: a, key: [jwt.sub], rate: 1/366d}]";
    let jwt = tollgate_policy::compile(file.as_bytes()).unwrap().settings.jwt.unwrap();
    let served = serve(file);
    served.node.set_tokens(Some(Arc::new(Verifier::new(&jwt, SECRET).unwrap())));
    let [good, forged, expired] =
        TOKENS.map(|token| format!("{GET}authorization: Bearer {token}\r\n"));
    let padded = good.trim_end().to_owned() + "==\r\n";
    let answer = ask(&served, "GET", "", &good);
    assert_eq!(answer.status, 200, "{answer:?}");
    for (lines, parameters, status, reason) in [
        (&*padded, "", 429, None),
        (&*forged, "", 429, Some("token-signature")),
        (&*expired, "?deny_status=403", 403, Some("token-expired")),
        (
            &*format!("{GET}authorization: Bearer\r\n"),
            "?deny_status=401",
            401,
            Some("token-malformed"),
        ),
    ] {
        let answer = ask(&served, "GET", parameters, lines);
        assert_eq!(
            (answer.status, answer.field("x-tollgate-decision")),
            (status, Some("deny")),
            "{answer:?}"
        );
        assert_eq!(answer.field("x-tollgate-reason"), reason, "{answer:?}");
        if reason.is_some() {
            assert_eq!(answer.field("retry-after"), None, "{answer:?}");
        }
    }
    assert_eq!(ask(&served, "GET", "", GET).status, 200);
}
