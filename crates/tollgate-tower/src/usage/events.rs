//! Server-sent events: JSON after `data:`, an event at a time.

use super::json::Json;

/// Hands the data of each event to a reader of JSON.
#[derive(Debug)]
pub(crate) struct Events {
    json: Json,
    line: Line,
    /// How much of a byte order mark has come, with which a stream may begin; all of it, where none can come any more.
    mark: usize,
    /// Whether the byte before was a CR, whose LF is no line of its own.
    after_cr: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// So many bytes of it, all of which could begin `data:`.
    Start(usize),
    /// Behind `data:`, where one space does not count.
    Colon,
    Data,
    /// Another field, or a comment.
    Other,
}

const DATA: &[u8] = b"data:";
const MARK: &[u8] = "\u{feff}".as_bytes();

impl Events {
    pub(crate) fn new(path: &str) -> Self {
        Self { json: Json::new(path), line: Line::Start(0), mark: 0, after_cr: false }
    }

    pub(crate) fn found(&self) -> Option<u64> {
        self.json.found()
    }

    pub(crate) fn read(&mut self, byte: u8) {
        if MARK.get(self.mark) == Some(&byte) {
            self.mark += 1;
            return;
        }
        self.mark = MARK.len();
        let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
        if byte == b'\n' && after_cr {
            return;
        }
        if matches!(byte, b'\n' | b'\r') {
            match self.line {
                // An empty line ends the event.
                Line::Start(0) => self.json.restart(),
                Line::Data | Line::Colon => self.json.read(b'\n'),
                Line::Start(_) | Line::Other => {}
            }
            self.line = Line::Start(0);
            return;
        }
        self.line = match self.line {
            Line::Start(at) if DATA[at] == byte && at + 1 == DATA.len() => Line::Colon,
            Line::Start(at) if DATA[at] == byte => Line::Start(at + 1),
            Line::Start(_) | Line::Other => Line::Other,
            Line::Colon if byte == b' ' => Line::Data,
            Line::Colon | Line::Data => {
                self.json.read(byte);
                Line::Data
            }
        };
    }
}
