//! Decodes and encodes chunked bodies.

use super::{ParseError, push_header};
use hyper::HeaderMap;
use std::ops::Range;

/// Limit of digits in a chunk size.
const DIGITS_MAX: u32 = 15;
/// Limit of bytes of all extensions, and of all trailers, of a body.
const OVERHEAD_BYTES_MAX: usize = 16 * 1024;

/// Decodes a chunked body. Drops extensions, keeps trailers.
#[derive(Debug, Default)]
pub(super) struct ChunkedDecoder {
    state: ChunkState,
    /// Whether spaces may follow a chunk size, as some upstreams send.
    is_lenient: bool,
    overhead_bytes: usize,
    /// The trailers, each line with its end.
    pub(super) trailers: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    /// The number of digits so far, and their value.
    Size(u32, u64),
    /// Spaces after a chunk size.
    SizePad(u64),
    Extension(u64),
    SizeLf(u64),
    /// The number of data bytes left in the chunk.
    Data(u64),
    DataCr,
    DataLf,
    /// The start of a trailer, or of the last line.
    Trailer,
    TrailerLine,
    TrailerLf,
    EndLf,
    End,
}

impl Default for ChunkState {
    fn default() -> Self {
        Self::Size(0, 0)
    }
}

impl ChunkedDecoder {
    /// Creates a decoder for responses, which accepts spaces after a chunk size.
    pub(super) fn lenient() -> Self {
        Self { is_lenient: true, ..Self::default() }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.state == ChunkState::End
    }

    /// Decodes up to the end of the next piece of data. Returns the bytes read and the range of the
    /// data among them. Without data, all bytes were read or the body has ended.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<(usize, Range<usize>), ParseError> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match &mut self.state {
                ChunkState::End => break,
                ChunkState::Data(left) => {
                    let taken = (*left).min((bytes.len() - at) as u64);
                    *left -= taken;
                    if *left == 0 {
                        self.state = ChunkState::DataCr;
                    }
                    let end = at + taken as usize;
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

    /// Decodes to the end of the bytes or of the body. Returns the number of bytes read.
    fn decode_all(
        &mut self,
        bytes: &[u8],
        mut on_data: impl FnMut(&[u8]),
    ) -> Result<usize, ParseError> {
        let mut at = 0;
        while at < bytes.len() && !self.is_finished() {
            let (read, data) = self.next(&bytes[at..])?;
            on_data(&bytes[at..][data]);
            at += read;
        }
        Ok(at)
    }

    fn step(&mut self, byte: u8) -> Result<ChunkState, ParseError> {
        use ChunkState::*;
        Ok(match (self.state, byte) {
            (Size(digits, size), _) if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16).ok_or(ParseError::Framing)?;
                if digits == DIGITS_MAX {
                    return Err(ParseError::Framing);
                }
                if size == 0 {
                    // Leading zeros count as overhead, not as digits.
                    self.count_overhead()?;
                    return Ok(Size(1, digit.into()));
                }
                Size(digits + 1, size << 4 | u64::from(digit))
            }
            (Size(1.., size), b'\r') => SizeLf(size),
            (Size(1.., size), b';') => Extension(size),
            (Size(1.., size) | SizePad(size), b' ' | b'\t') if self.is_lenient => {
                self.count_overhead()?;
                SizePad(size)
            }
            (SizePad(size), b';') => Extension(size),
            (Extension(size) | SizePad(size), b'\r') => SizeLf(size),
            (Extension(size), byte) if byte != b'\n' => {
                self.count_overhead()?;
                Extension(size)
            }
            (SizeLf(0), b'\n') => Trailer,
            (SizeLf(size), b'\n') => Data(size),
            (DataCr, b'\r') => DataLf,
            (DataLf, b'\n') => ChunkState::default(),
            (Trailer, b'\r') => EndLf,
            (Trailer, b' ' | b'\t' | b'\n') => return Err(ParseError::Syntax),
            (TrailerLine, b'\r') => {
                self.push_trailer(byte)?;
                TrailerLf
            }
            (Trailer | TrailerLine, byte) if byte != b'\n' => {
                self.push_trailer(byte)?;
                TrailerLine
            }
            (TrailerLf, b'\n') => {
                self.push_trailer(byte)?;
                Trailer
            }
            (EndLf, b'\n') => End,
            _ => return Err(ParseError::Framing),
        })
    }

    /// Counts a byte that carries no data.
    fn count_overhead(&mut self) -> Result<(), ParseError> {
        self.overhead_bytes += 1;
        if self.overhead_bytes > OVERHEAD_BYTES_MAX { Err(ParseError::TooLarge) } else { Ok(()) }
    }

    fn push_trailer(&mut self, byte: u8) -> Result<(), ParseError> {
        self.trailers.push(byte);
        if self.trailers.len() > OVERHEAD_BYTES_MAX { Err(ParseError::TooLarge) } else { Ok(()) }
    }
}

/// Whether these bytes can start a chunked request body.
pub(super) fn is_valid_prefix(bytes: &[u8]) -> bool {
    ChunkedDecoder::default().decode_all(bytes, |_| {}).is_ok()
}

/// Decodes a complete response body without trailers into `out`. Returns its encoded length.
pub fn decode_chunks(bytes: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let mut decoder = ChunkedDecoder::lenient();
    let read = decoder.decode_all(bytes, |data| out.extend_from_slice(data)).ok()?;
    (decoder.is_finished() && decoder.trailers.is_empty()).then_some(read)
}

/// Appends the end of a chunked body, with trailers.
pub(crate) fn push_trailers(trailers: &HeaderMap, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers {
        push_header(name.as_ref(), value.as_bytes(), out);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a chunk. `data` is not empty.
pub(crate) fn push_chunk(data: &[u8], out: &mut Vec<u8>) {
    let digits = (usize::BITS - data.len().leading_zeros()).div_ceil(4);
    for place in (0..digits).rev() {
        out.push(b"0123456789abcdef"[data.len() >> (4 * place) & 15]);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}
