use super::HttpPolicy;

#[test]
fn what_may_be_a_secret_is_known_by_its_name_and_source() {
    let file = b"identity: {user: header.x-user-id, caller: header.authorization, who: cookie.sid, \
        tenant: query.tenant, guest: query.access_token, client: header.x-auth, subject: jwt.sub, api_key: header.x-api-key}\n\
        jwt: {keys: k}";
    let web = HttpPolicy::of(&crate::compile(file).expect("a file").settings);
    for secret in [
        "header.authorization",
        "header.proxy-authorization",
        "header.x-api-key",
        "header.apikey",
        "header.x-auth-token",
        "header.cookie",
        "cookie.sid",
        "cookie.theme",
        "query.token",
        "query.access_token",
        "query.api_key",
        "query.sig",
        "token",
        "password",
        "session",
        "caller",
        "who",
        "guest",
        "client",
        "header.x-auth",
        "header.x-user-id",
        "header.user-agent",
        "header.x-monkey",
        "query.page",
    ] {
        assert!(web.holds_secret(secret), "{secret}");
    }
    for open in [
        "user",
        "tenant",
        "subject",
        "jwt.sub",
        "api_key",
        "ip",
        "path",
        "descriptor.remote_address",
    ] {
        assert!(!web.holds_secret(open), "{open}");
    }
}

#[test]
fn secret_parameters_are_those_that_the_policy_reads() {
    let file = b"identity: {api_key: query.key, tenant: query.tenant, guest: query.access_token}";
    let web = HttpPolicy::of(&crate::compile(file).expect("a file").settings);
    let used = ["ip", "query.page", "header.x-auth", "api_key"];
    assert_eq!(web.secret_parameters(used.into_iter()), ["key", "access_token", "page"]);
    assert_eq!(web.secret_parameters(std::iter::empty()), ["key", "access_token"]);
}
