//! Chunked bodies: where the data of each chunk lies, and where the body ends.

use super::{ParseError, push_header};
use hyper::HeaderMap;
use std::ops::Range;

/// Digits of a chunk's size, at most: more than any body has.
const DIGITS_MAX: u32 = 15;
/// Bytes of all extensions, and of all trailers, of a body.
const OVERHEAD_BYTES_MAX: usize = 16 * 1024;

/// A chunked body that is being read. Extensions are dropped; trailers are kept.
#[derive(Debug, Default)]
pub(super) struct ChunkedDecoder {
    state: ChunkState,
    /// Whether a size may have spaces behind it, as some upstreams write it.
    is_lenient: bool,
    extension_bytes: usize,
    /// The trailers, each line with its end.
    pub(super) trailers: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
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

impl Default for ChunkState {
    fn default() -> Self {
        Self::Size { digits: 0, size: 0 }
    }
}

impl ChunkedDecoder {
    /// For the body of an answer: the upstream is trusted to mean what it says.
    pub(super) fn lenient() -> Self {
        Self { is_lenient: true, ..Self::default() }
    }

    /// Whether the body has ended.
    pub(super) fn is_finished(&self) -> bool {
        self.state == ChunkState::End
    }

    /// Reads on to the end of the next piece of data: how many bytes were read, and where the data
    /// among them lies. Without data, all bytes were read or the body is over.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<(usize, Range<usize>), ParseError> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match &mut self.state {
                ChunkState::End => break,
                ChunkState::Data { left } => {
                    let available = (bytes.len() - at) as u64;
                    let taken = (*left).min(available);
                    *left -= taken;
                    if *left == 0 {
                        self.state = ChunkState::DataCr;
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

    fn step(&mut self, byte: u8) -> Result<ChunkState, ParseError> {
        Ok(match (self.state, byte) {
            (ChunkState::Size { digits, size }, _) if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16).ok_or(ParseError::Framing)?;
                if digits == DIGITS_MAX {
                    return Err(ParseError::Framing);
                }
                if size == 0 {
                    // Zeros in front do not make a size larger.
                    self.count_overhead()?;
                    return Ok(ChunkState::Size { digits: 1, size: digit.into() });
                }
                ChunkState::Size { digits: digits + 1, size: size << 4 | u64::from(digit) }
            }
            (ChunkState::Size { digits: 1.., size }, b'\r') => ChunkState::SizeLf { size },
            (ChunkState::Size { digits: 1.., size }, b';') => ChunkState::Extension { size },
            (
                ChunkState::Size { digits: 1.., size } | ChunkState::SizePad { size },
                b' ' | b'\t',
            ) if self.is_lenient => {
                self.count_overhead()?;
                ChunkState::SizePad { size }
            }
            (ChunkState::SizePad { size }, b';') => ChunkState::Extension { size },
            (ChunkState::Extension { size } | ChunkState::SizePad { size }, b'\r') => {
                ChunkState::SizeLf { size }
            }
            (ChunkState::Extension { size }, byte) if byte != b'\n' => {
                self.count_overhead()?;
                ChunkState::Extension { size }
            }
            (ChunkState::SizeLf { size: 0 }, b'\n') => ChunkState::Trailer,
            (ChunkState::SizeLf { size }, b'\n') => ChunkState::Data { left: size },
            (ChunkState::DataCr, b'\r') => ChunkState::DataLf,
            (ChunkState::DataLf, b'\n') => ChunkState::default(),
            (ChunkState::Trailer, b'\r') => ChunkState::EndLf,
            (ChunkState::Trailer, b' ' | b'\t' | b'\n') => return Err(ParseError::Syntax),
            (ChunkState::TrailerLine, b'\r') => {
                self.trailer(byte)?;
                ChunkState::TrailerLf
            }
            (ChunkState::Trailer | ChunkState::TrailerLine, byte) if byte != b'\n' => {
                self.trailer(byte)?;
                ChunkState::TrailerLine
            }
            (ChunkState::TrailerLf, b'\n') => {
                self.trailer(byte)?;
                ChunkState::Trailer
            }
            (ChunkState::EndLf, b'\n') => ChunkState::End,
            _ => return Err(ParseError::Framing),
        })
    }

    /// Counts a byte that carries nothing.
    fn count_overhead(&mut self) -> Result<(), ParseError> {
        self.extension_bytes += 1;
        if self.extension_bytes > OVERHEAD_BYTES_MAX { Err(ParseError::TooLarge) } else { Ok(()) }
    }

    fn trailer(&mut self, byte: u8) -> Result<(), ParseError> {
        self.trailers.push(byte);
        if self.trailers.len() > OVERHEAD_BYTES_MAX { Err(ParseError::TooLarge) } else { Ok(()) }
    }
}

/// Whether bytes can be the beginning of a chunked body of a request.
pub(super) fn is_valid_prefix(bytes: &[u8]) -> bool {
    let mut decoder = ChunkedDecoder::default();
    let mut at = 0;
    while at < bytes.len() && !decoder.is_finished() {
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
    let mut decoder = ChunkedDecoder::lenient();
    let mut at = 0;
    while at < bytes.len() && !decoder.is_finished() {
        let (read, data) = decoder.next(&bytes[at..]).ok()?;
        out.extend_from_slice(&bytes[at..][data]);
        at += read;
    }
    (decoder.is_finished() && decoder.trailers.is_empty()).then_some(at)
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
