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
