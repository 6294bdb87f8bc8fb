//! Server-sent events: reads the JSON after `data:`, one event at a time.

use super::json::JsonPathReader;

/// Passes the data of each event to a JSON reader.
#[derive(Debug)]
pub(crate) struct SseReader {
    json: JsonPathReader,
    line: SseLine,
    /// The number of bytes of a byte order mark read at the start of the stream. It is the mark's
    /// full length when no mark can follow.
    bom_bytes: usize,
    /// Whether the last byte was a CR: an LF after it does not start another line.
    after_cr: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SseLine {
    /// The first bytes of a line, which match the start of `data:`; their number.
    Start(usize),
    /// After `data:`. One space is skipped here.
    Colon,
    Data,
    /// Another field, or a comment.
    Other,
}

const DATA: &[u8] = b"data:";
const MARK: &[u8] = "\u{feff}".as_bytes();

impl SseReader {
    pub(crate) fn new(path: &str) -> Self {
        Self {
            json: JsonPathReader::new(path),
            line: SseLine::Start(0),
            bom_bytes: 0,
            after_cr: false,
        }
    }

    pub(crate) fn found(&self) -> Option<u64> {
        self.json.found()
    }

    pub(crate) fn read(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if self.line == SseLine::Data && !matches!(byte, b'\n' | b'\r') {
                let rest = &bytes[at..];
                let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
                let (data, _) = rest.split_at(rest.iter().position(is_end).unwrap_or(rest.len()));
                self.json.read(data);
                at += data.len();
            } else {
                self.step(byte);
                at += 1;
            }
        }
    }

    fn step(&mut self, byte: u8) {
        if MARK.get(self.bom_bytes) == Some(&byte) {
            self.bom_bytes += 1;
            return;
        }
        self.bom_bytes = MARK.len();
        let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
        if byte == b'\n' && after_cr {
            return;
        }
        if matches!(byte, b'\n' | b'\r') {
            match self.line {
                // An empty line ends the event.
                SseLine::Start(0) => self.json.restart(),
                SseLine::Data | SseLine::Colon => self.json.read(b"\n"),
                SseLine::Start(_) | SseLine::Other => {}
            }
            self.line = SseLine::Start(0);
            return;
        }
        self.line = match self.line {
            SseLine::Start(at) if DATA[at] == byte && at + 1 == DATA.len() => SseLine::Colon,
            SseLine::Start(at) if DATA[at] == byte => SseLine::Start(at + 1),
            SseLine::Start(_) | SseLine::Other => SseLine::Other,
            SseLine::Colon if byte == b' ' => SseLine::Data,
            SseLine::Colon | SseLine::Data => {
                self.json.read(&[byte]);
                SseLine::Data
            }
        };
    }
}
