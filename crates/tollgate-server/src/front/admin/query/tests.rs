use super::Query;

#[test]
fn parameters_are_decoded_known_and_unique() {
    let mut query =
        Query::parse(Some("limit=login%2Fip&by=a+b&x="), &["limit", "by", "x"]).unwrap();
    assert_eq!(query.take("limit").as_deref(), Some("login/ip"));
    assert_eq!(query.take("by").as_deref(), Some("a b"));
    assert_eq!(query.take("by"), None);
    assert_eq!(query.into_rest(), [("x".to_owned(), String::new())]);
    for bad in ["by=1&by=2", "other=1", "by=%zz", "by=%ff"] {
        assert!(Query::parse(Some(bad), &["by"]).is_err(), "{bad}");
    }
}

#[test]
fn a_word_is_one_of_its_choices_and_the_first_by_default() {
    let choices = [("1m", 1), ("1h", 2)];
    let word = |query| Query::parse(Some(query), &[]).unwrap().take_word("window", &choices);
    assert_eq!(word("").unwrap(), 1);
    assert_eq!(word("window=1h").unwrap(), 2);
    assert!(word("window=2h").is_err());
}
