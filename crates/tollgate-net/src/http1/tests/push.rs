use super::super::push::push_header;

#[test]
fn names_of_every_length_are_written_in_lower_case() {
    let name = b"Aa-Zz_09@[`{X-RateLimit-Limit";
    for start in 0..name.len() {
        for end in start + 1..=name.len() {
            let mut out = b"x".to_vec();
            push_header(&name[start..end], b"V", &mut out);
            let expected = [b"x", &*name[start..end].to_ascii_lowercase(), b": V\r\n"].concat();
            assert_eq!(out, expected);
        }
    }
}
