use super::*;

/// A reader that returns a few bytes at a time, like a pipe.
struct Drips<'a>(&'a [u8], usize);

impl Read for Drips<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(self.0.len()).min(buffer.len());
        let (now, later) = self.0.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.0 = later;
        Ok(count)
    }
}

fn lines(text: &[u8], drip: usize, line_bytes_max: usize) -> Vec<(u64, Vec<u8>)> {
    let mut lines = Lines::new(Drips(text, drip), line_bytes_max);
    let mut found = Vec::new();
    loop {
        match lines.next() {
            NextLine::Line(number, line) | NextLine::TooLong(number, line) => {
                found.push((number, line.to_vec()));
            }
            NextLine::Empty => lines.fill().unwrap(),
            NextLine::End => return found,
        }
    }
}

#[test]
fn lines_are_the_same_however_they_arrive() {
    let text = b"one\n\nthree\r\nlast";
    for drip in 1..=text.len() {
        let found = lines(text, drip, 10);
        let expected: [(u64, &[u8]); 4] = [(1, b"one"), (2, b""), (3, b"three\r"), (4, b"last")];
        assert!(found.iter().map(|(n, line)| (*n, &line[..])).eq(expected), "{found:?}");
    }
    assert!(lines(b"", 1, 10).is_empty());
    assert_eq!(lines(b"x\n", 1, 10), [(1, b"x".to_vec())]);
}

#[test]
fn long_input_keeps_every_line() {
    let text: String = (0..100_000).map(|n| format!("line {n}\n")).collect();
    let found = lines(text.as_bytes(), 70_000, 10);
    assert_eq!(found.len(), 100_000);
    assert_eq!(found[99_999], (100_000, b"line 99999".to_vec()));
}

#[test]
fn of_a_long_line_the_first_bytes_are_handed_out_and_the_rest_is_skipped() {
    for drip in [1, 7, 1_000_000] {
        let text = b"short\n0123456789abcdef\nnext\n0123456789a";
        let found = lines(text, drip, 10);
        let expected: [(u64, &[u8]); 4] =
            [(1, b"short"), (2, b"0123456789"), (3, b"next"), (4, b"0123456789")];
        assert!(found.iter().map(|(n, line)| (*n, &line[..])).eq(expected), "{found:?}");
    }
}

#[test]
fn an_endless_line_is_handed_out_before_it_ends() {
    let text = vec![b'x'; 3 * READ_BYTES];
    let found = lines(&text, 10_000, READ_BYTES);
    assert_eq!((found.len(), found[0].1.len()), (1, READ_BYTES));
}
