use super::*;

fn fields(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pair = |&(name, value): &(&'static str, &'static str)| {
        (name.parse().unwrap(), HeaderValue::from_static(value))
    };
    pairs.iter().map(pair).collect::<Vec<_>>().into_iter().fold(
        HeaderMap::new(),
        |mut headers, (name, value): (hyper::header::HeaderName, _)| {
            headers.append(name, value);
            headers
        },
    )
}

#[test]
fn crumbs_become_one_cookie_and_other_fields_stay() {
    let mut headers = fields(&[("cookie", "a=1"), ("x", "1"), ("cookie", "b=2"), ("x", "2")]);
    assert_eq!(settle(&mut headers), Ok(()));
    assert_eq!(headers.get_all(COOKIE).iter().collect::<Vec<_>>(), ["a=1; b=2"]);
    assert_eq!(headers.get_all("x").iter().count(), 2);
}

#[test]
fn a_length_is_said_once() {
    assert_eq!(settle(&mut fields(&[("content-length", "3")])), Ok(()));
    let mut twice = fields(&[("content-length", "3"), ("content-length", "3")]);
    assert_eq!(settle(&mut twice), Err(Invalid::Length));
}
