//! The terminal: raw input, and the alternate screen. Dropping it restores both.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, IsTerminal, Read, Write};
use tokio::sync::mpsc;

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// The size of a terminal that does not report one.
const SIZE: (usize, usize) = (80, 24);

pub(super) struct Terminal {
    before: Termios,
    keys: mpsc::Receiver<char>,
}

impl Terminal {
    /// Takes over the terminal.
    pub(super) fn open() -> io::Result<Self> {
        if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Flush, &raw)?;
        let (sender, keys) = mpsc::channel(64);
        // The thread reads until the process ends, since a read of standard input cannot be
        // cancelled.
        std::thread::Builder::new().name("keys".into()).spawn(move || {
            for byte in io::stdin().lock().bytes() {
                let Ok(byte) = byte else { return };
                if sender.blocking_send(char::from(byte)).is_err() {
                    return;
                }
            }
        })?;
        let terminal = Self { before, keys };
        terminal.write(ENTER)?;
        Ok(terminal)
    }

    /// The next key press; `None` at the end of input.
    pub(super) async fn key(&mut self) -> Option<char> {
        self.keys.recv().await
    }

    pub(super) fn size(&self) -> (usize, usize) {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (size.ws_col.into(), size.ws_row.into())
            }
            _ => SIZE,
        }
    }

    /// Draws over the old lines, without clearing the screen, so that nothing flickers.
    pub(super) fn draw(&self, lines: &[String]) -> io::Result<()> {
        let mut out = String::from("\x1b[H");
        for (place, line) in lines.iter().enumerate() {
            let end = if place + 1 < lines.len() { "\r\n" } else { "" };
            out.push_str(&format!("{line}\x1b[K{end}"));
        }
        out.push_str("\x1b[J");
        self.write(&out)
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.write(LEAVE);
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
    }
}
