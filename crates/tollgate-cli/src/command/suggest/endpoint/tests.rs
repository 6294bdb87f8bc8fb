use super::*;

#[test]
fn ids_are_stars_and_words_stay() {
    for (path, expected) in [
        ("/", "/"),
        ("/users/42/orders", "/users/*/orders"),
        ("/v1/charges", "/v1/charges"),
        ("/o/550e8400-e29b-41d4-a716-446655440000", "/o/*"),
        ("/static/app.3f2a.js", "/static/*.js"),
        ("/a/%2e%2e/b*", "/a/*/*"),
        ("/a/b/c/d/e/f/g/h", "/a/b/c/d/e/f/**"),
        ("/tag/caf\u{e9}", "/tag/*"),
    ] {
        assert_eq!(pattern(path), expected, "{path}");
    }
}

#[test]
fn a_million_paths_are_a_few_endpoints() {
    let mut endpoints = Endpoints::default();
    for n in 0..20_000_u32 {
        let word: String = n.to_string().bytes().map(|digit| char::from(digit + 49)).collect();
        let path = format!("/{}/{word}", &word[..word.len().min(3)]);
        let number = endpoints.number("GET", &path);
        assert_eq!(endpoints.known("GET", &path), Some(number));
    }
    assert_eq!(endpoints.len(), ENDPOINTS_MAX + FOLDERS_MAX + 1);
    assert_eq!(endpoints.get(endpoints.len() - 1), ("", "/**"));
}
