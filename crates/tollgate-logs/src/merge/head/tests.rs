use super::*;

/// Grows a head for at most `rounds_max` rounds. Returns it with the number of rounds.
fn grown(input: impl Read, rounds_max: usize) -> (Head, usize) {
    let (mut lines, mut head) = (Lines::new(input, LINE_BYTES_MAX), Head::default());
    for round in 1..=rounds_max {
        if !head.grow(&mut lines).unwrap() {
            return (head, round);
        }
    }
    (head, rounds_max)
}

#[test]
fn a_head_has_the_first_lines_that_are_not_blank_with_their_numbers() {
    let (head, _) = grown(&b"\n one\r\n\nthree"[..], 1);
    let lines: Vec<_> = head.lines().iter().map(|(n, line)| (*n, line.text(*n))).collect();
    assert_eq!(lines, [(2, Ok(" one")), (4, Ok("three"))]);
    assert!(head.is_whole());
}

#[test]
fn a_head_looks_past_lines_that_are_too_long_and_keeps_none_of_their_bytes() {
    let long = "x".repeat(5 << 20);
    let (head, _) = grown(format!("{long}\n{long}\nline\n").as_bytes(), 1);
    let lines: Vec<_> = head.lines().iter().map(|(n, line)| (*n, line.text(*n))).collect();
    assert_eq!(lines, [(1, Err(TOO_LONG)), (2, Err(TOO_LONG)), (3, Ok("line"))]);
    assert!(head.text_bytes < 10);
}

#[test]
fn a_head_grows_to_a_bound() {
    let text = "short\n".repeat(100_000);
    let sizes = [1, 2, 3].map(|rounds| grown(text.as_bytes(), rounds).0.lines().len());
    assert_eq!(sizes, [64, 512, 4_096]);
    assert_eq!(grown(text.as_bytes(), 9).1, 3);
    // Long lines and an endless line stop the growth earlier.
    let text = format!("{}\n", "x".repeat(LINE_BYTES_MAX)).repeat(1_000);
    assert!(grown(text.as_bytes(), 9).0.text_bytes <= TEXT_BYTES_MAX + LINE_BYTES_MAX);
    let (head, rounds) = grown(io::repeat(b'x'), 9);
    assert_eq!((head.lines().len(), head.is_whole(), rounds), (1, false, 1));
    assert!(head.read_bytes <= READ_BYTES_MAX + (1 << 20));
}

#[test]
fn marks_and_ends_of_windows_are_no_part_of_a_line() {
    assert_eq!(text(1, b"\xef\xbb\xbftime,ip\r"), Ok("time,ip"));
    assert_eq!(text(2, b"\xef\xbb\xbftime"), Ok("\u{feff}time"));
    assert!(text(1, b"\xff\xfet\0i\0").is_err_and(|why| why.contains("UTF-16")));
    assert_eq!(text(2, b"\xff\xfet\0i\0"), Err("the line is not UTF-8"));
}
