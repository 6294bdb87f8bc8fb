//! Where a chunked body ends.

use super::Broken;

/// Digits of a chunk's size, at most: more than any body has.
const DIGITS_MAX: u32 = 15;
/// Bytes of a chunk's extensions, and of a body's trailers, at most.
const ASIDE_MAX: u32 = 16 * 1024;

/// A chunked body that is being read.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    place: Place,
    /// Bytes that carried no content.
    aside: u32,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Size {
        digits: u32,
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
}

impl Default for Place {
    fn default() -> Self {
        Self::Size { digits: 0, size: 0 }
    }
}

impl Chunks {
    /// How many of the bytes belong to the body, and whether it ends with them.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<(usize, bool), Broken> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if let Place::Data { left } = &mut self.place {
                let taken = (*left).min((bytes.len() - at) as u64);
                *left -= taken;
                at += usize::try_from(taken).unwrap_or(bytes.len() - at);
                if *left == 0 {
                    self.place = Place::DataCr;
                }
                continue;
            }
            at += 1;
            if let (Place::EndLf, b'\n') = (self.place, byte) {
                return Ok((at, true));
            }
            self.place = self.step(byte)?;
        }
        Ok((at, false))
    }

    fn step(&mut self, byte: u8) -> Result<Place, Broken> {
        Ok(match (self.place, byte) {
            (Place::Size { digits, size }, _) if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16).ok_or(Broken)?;
                if digits == DIGITS_MAX {
                    return Err(Broken);
                }
                Place::Size { digits: digits + 1, size: size << 4 | u64::from(digit) }
            }
            (Place::Size { digits: 1.., size }, b'\r') => Place::SizeLf { size },
            (Place::Size { digits: 1.., size }, b';') => Place::Extension { size },
            (Place::Extension { size }, b'\r') => Place::SizeLf { size },
            (Place::Extension { size }, byte) if byte != b'\n' => {
                self.aside()?;
                Place::Extension { size }
            }
            (Place::SizeLf { size: 0 }, b'\n') => Place::Trailer,
            (Place::SizeLf { size }, b'\n') => Place::Data { left: size },
            (Place::DataCr, b'\r') => Place::DataLf,
            (Place::DataLf, b'\n') => Place::default(),
            (Place::Trailer, b'\r') => Place::EndLf,
            (Place::Trailer, b' ' | b'\t' | b'\n') => return Err(Broken),
            (Place::TrailerLine, b'\r') => Place::TrailerLf,
            (Place::Trailer | Place::TrailerLine, byte) if byte != b'\n' => {
                self.aside()?;
                Place::TrailerLine
            }
            (Place::TrailerLf, b'\n') => Place::Trailer,
            _ => return Err(Broken),
        })
    }

    fn aside(&mut self) -> Result<(), Broken> {
        self.aside += 1;
        if self.aside > ASIDE_MAX { Err(Broken) } else { Ok(()) }
    }
}
