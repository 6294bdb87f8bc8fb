//! Ways to say a length.

use super::{Unclear, settle};
use hyper::{
    HeaderMap,
    header::{CONTENT_LENGTH, HeaderValue},
};

/// What is left of these lines.
fn settled(lines: &[&str]) -> Result<Vec<String>, Unclear> {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(CONTENT_LENGTH, HeaderValue::from_str(line).unwrap());
    }
    settle(&mut headers)?;
    let left = headers.get_all(CONTENT_LENGTH).iter();
    Ok(left.map(|line| line.to_str().unwrap().to_owned()).collect())
}

#[test]
fn one_length_is_left() {
    let cases: [(&[&str], &[&str]); 9] = [
        (&[], &[]),
        (&["0"], &["0"]),
        (&["20"], &["20"]),
        (&["002"], &["2"]),
        (&["00"], &["0"]),
        (&["2, 2"], &["2"]),
        (&["2", "2"], &["2"]),
        (&["2,02", "\t2"], &["2"]),
        (&["18446744073709551615"], &["18446744073709551615"]),
    ];
    for (said, left) in cases {
        assert_eq!(settled(said).unwrap(), left, "{said:?}");
    }
}

#[test]
fn what_is_not_one_length_is_none() {
    let cases: [&[&str]; 10] = [
        &["2, 3"],
        &["2", "3"],
        &["2", ""],
        &[""],
        &["2,"],
        &["+2"],
        &["-2"],
        &["0x2"],
        &["2 2"],
        &["18446744073709551616"],
    ];
    for said in cases {
        assert_eq!(settled(said), Err(Unclear), "{said:?}");
    }
}
