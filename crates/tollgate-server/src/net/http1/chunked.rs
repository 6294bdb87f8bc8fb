//! Chunked bodies: where the data of each chunk lies, and where the body ends.

use super::{Refused, push_header};
use hyper::HeaderMap;
use std::ops::Range;

/// Digits of a chunk's size, at most: more than any body has.
const DIGITS_MAX: u32 = 15;
/// Bytes of all extensions, and of all trailers, of a body.
const ASIDE_MAX: usize = 16 * 1024;

/// A chunked body that is being read. Extensions are dropped; trailers are kept.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    state: State,
    /// Whether a size may have spaces behind it, as some upstreams write it.
    is_lenient: bool,
    extension_bytes: usize,
    /// The trailers, each line with its end.
    pub(super) trailers: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size {
        digits: u32,
        size: u64,
    },
    /// In spaces behind a size.
    SizePad {
        size: u64,
    },
    Extension {
        size: u64,
    },
    SizeLf {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// At the start of a trailer, or of the line that ends them.
    Trailer,
    TrailerLine,
    TrailerLf,
    EndLf,
    End,
}

impl Default for State {
    fn default() -> Self {
        Self::Size { digits: 0, size: 0 }
    }
}

impl Decoder {
    /// For the body of an answer: the upstream is trusted to mean what it says.
    pub(super) fn lenient() -> Self {
        Self { is_lenient: true, ..Self::default() }
    }

    /// Whether the body has ended.
    pub(super) fn is_over(&self) -> bool {
        self.state == State::End
    }

    /// Reads on to the end of the next piece of data: how many bytes were read, and where the data
    /// among them lies. Without data, all bytes were read or the body is over.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<(usize, Range<usize>), Refused> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match &mut self.state {
                State::End => break,
                State::Data { left } => {
                    let available = (bytes.len() - at) as u64;
                    let taken = (*left).min(available);
                    *left -= taken;
                    if *left == 0 {
                        self.state = State::DataCr;
                    }
                    let end = at + usize::try_from(taken).unwrap_or(bytes.len() - at);
                    return Ok((end, at..end));
                }
                _ => {
                    self.state = self.step(byte)?;
                    at += 1;
                }
            }
        }
        Ok((at, 0..0))
    }

    fn step(&mut self, byte: u8) -> Result<State, Refused> {
        Ok(match (self.state, byte) {
            (State::Size { digits, size }, _) if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16).ok_or(Refused::Framing)?;
                if digits == DIGITS_MAX {
                    return Err(Refused::Framing);
                }
                if size == 0 {
                    // Zeros in front do not make a size larger.
                    self.aside()?;
                    return Ok(State::Size { digits: 1, size: digit.into() });
                }
                State::Size { digits: digits + 1, size: size << 4 | u64::from(digit) }
            }
            (State::Size { digits: 1.., size }, b'\r') => State::SizeLf { size },
            (State::Size { digits: 1.., size }, b';') => State::Extension { size },
            (State::Size { digits: 1.., size } | State::SizePad { size }, b' ' | b'\t')
                if self.is_lenient =>
            {
                self.aside()?;
                State::SizePad { size }
            }
            (State::SizePad { size }, b';') => State::Extension { size },
            (State::Extension { size } | State::SizePad { size }, b'\r') => State::SizeLf { size },
            (State::Extension { size }, byte) if byte != b'\n' => {
                self.aside()?;
                State::Extension { size }
            }
            (State::SizeLf { size: 0 }, b'\n') => State::Trailer,
            (State::SizeLf { size }, b'\n') => State::Data { left: size },
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::default(),
            (State::Trailer, b'\r') => State::EndLf,
            (State::Trailer, b' ' | b'\t' | b'\n') => return Err(Refused::Syntax),
            (State::TrailerLine, b'\r') => {
                self.trailer(byte)?;
                State::TrailerLf
            }
            (State::Trailer | State::TrailerLine, byte) if byte != b'\n' => {
                self.trailer(byte)?;
                State::TrailerLine
            }
            (State::TrailerLf, b'\n') => {
                self.trailer(byte)?;
                State::Trailer
            }
            (State::EndLf, b'\n') => State::End,
            _ => return Err(Refused::Framing),
        })
    }

    /// Counts a byte that carries nothing.
    fn aside(&mut self) -> Result<(), Refused> {
        self.extension_bytes += 1;
        if self.extension_bytes > ASIDE_MAX { Err(Refused::TooLarge) } else { Ok(()) }
    }

    fn trailer(&mut self, byte: u8) -> Result<(), Refused> {
        self.trailers.push(byte);
        if self.trailers.len() > ASIDE_MAX { Err(Refused::TooLarge) } else { Ok(()) }
    }
}

/// Whether bytes can be the beginning of a chunked body of a request.
pub(super) fn can_begin(bytes: &[u8]) -> bool {
    let mut decoder = Decoder::default();
    let mut at = 0;
    while at < bytes.len() && !decoder.is_over() {
        match decoder.next(&bytes[at..]) {
            Ok((read, _)) => at += read,
            Err(_) => return false,
        }
    }
    true
}

/// Appends the data of an answer's body that is here whole, and that has no trailers; how many
/// bytes it has.
pub(crate) fn decode_chunks(bytes: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let mut decoder = Decoder::lenient();
    let mut at = 0;
    while at < bytes.len() && !decoder.is_over() {
        let (read, data) = decoder.next(&bytes[at..]).ok()?;
        out.extend_from_slice(&bytes[at..][data]);
        at += read;
    }
    (decoder.is_over() && decoder.trailers.is_empty()).then_some(at)
}

/// Appends the end of a body, with these trailers.
pub(crate) fn push_trailers(trailers: &HeaderMap, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers {
        push_header(name.as_ref(), value.as_bytes(), out);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a chunk with this data, which is not empty.
pub(crate) fn push_chunk(data: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut size = [0; 16];
    let (mut first, mut rest) = (size.len(), data.len());
    while first == size.len() || rest > 0 {
        first -= 1;
        size[first] = DIGITS[rest & 15];
        rest >>= 4;
    }
    out.extend_from_slice(&size[first..]);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}
