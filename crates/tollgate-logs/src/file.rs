//! Files and pipes, plain or gzip.

use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The first bytes of a gzip stream.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// The first bytes of unsupported compressed streams, and the program that decompresses them.
const UNREAD: [(&[u8], &str); 3] = [
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "xz"),
    (b"BZh", "bzip2"),
];
const MAGIC_BYTES_MAX: u64 = 5;

/// Counts the bytes read from a file, before decompression.
struct Counted<R> {
    reader: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Opens a file, or standard input for `-`. Adds the number of bytes read to `read`.
pub(crate) fn open(path: &Path, read: Arc<AtomicU64>) -> io::Result<Box<dyn Read>> {
    if path.as_os_str() == "-" {
        return decompressed(Counted { reader: io::stdin().lock(), read });
    }
    decompressed(Counted { reader: File::open(path)?, read })
}

/// Decompresses a gzip stream; returns any other stream unchanged.
fn decompressed(mut reader: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let mut first = Vec::new();
    reader.by_ref().take(MAGIC_BYTES_MAX).read_to_end(&mut first)?;
    if let Some((_, program)) = UNREAD.iter().find(|(magic, _)| first.starts_with(magic)) {
        return Err(io::Error::other(format!(
            "it is compressed with {program}, and only gzip is read here; decompress it first: \
             {program} -dk FILE"
        )));
    }
    let is_gzip = first.starts_with(GZIP);
    let whole = io::Cursor::new(first).chain(reader);
    Ok(if is_gzip { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) })
}
