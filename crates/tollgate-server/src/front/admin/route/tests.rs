use super::*;

#[test]
fn each_path_has_its_methods() {
    for (path, allowed) in [
        ("/healthz", "GET, HEAD"),
        ("/readyz", "GET, HEAD"),
        ("/metrics", "GET, HEAD"),
        ("/v1/policy", "GET, HEAD"),
        ("/v1/inspect", "POST"),
        ("/v1/reset", "POST"),
        ("/v1/block", "POST"),
        ("/v1/unblock", "POST"),
        ("/v1/reload", "POST"),
        ("/v1/limits/a/mode", "PUT, DELETE"),
    ] {
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let found = AdminRoute::find(&method.parse().unwrap(), path);
            match allowed.split(", ").any(|one| one == method) {
                true => assert!(found.is_ok(), "{method} {path}"),
                false => {
                    let response = found.unwrap_err().into_response();
                    assert_eq!(response.status(), 405, "{method} {path}");
                    assert_eq!(response.headers()["allow"], allowed);
                }
            }
        }
    }
}

#[test]
fn paths_are_exact() {
    for path in [
        "/index.html",
        "",
        "/healthz/",
        "/v1",
        "/v1/check",
        "/v1/limits",
        "/v1/limits/a",
        "/v1/limits/mode",
    ] {
        assert_eq!(
            AdminRoute::find(&Method::GET, path).unwrap_err().into_response().status(),
            404,
            "{path}"
        );
    }
}

#[test]
fn a_name_may_have_any_character() {
    for (path, name) in [
        ("per-user", "per-user"),
        ("login%2Fip%2Buser", "login/ip+user"),
        ("login/ip+user", "login/ip+user"),
        ("a%20b%25", "a b%"),
        ("%C3%BC", "ü"),
        ("mode", "mode"),
        ("a/mode", "a/mode"),
    ] {
        let path = format!("/v1/limits/{path}/mode");
        assert_eq!(
            AdminRoute::find(&Method::PUT, &path).unwrap(),
            AdminRoute::SetMode(name.into())
        );
        assert_eq!(
            AdminRoute::find(&Method::DELETE, &path).unwrap(),
            AdminRoute::ClearMode(name.into())
        );
    }
    for broken in ["%", "%2", "%zz", "%ff", "", "%+1"] {
        let path = format!("/v1/limits/{broken}/mode");
        assert_eq!(
            AdminRoute::find(&Method::PUT, &path).unwrap_err().into_response().status(),
            400,
            "{broken}"
        );
    }
}
