//! A log file that rotates when it is large: `a.log` becomes `a.log.1`, then `a.log.2`.

use crate::append::open_append;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A file that lines are appended to.
#[derive(Debug)]
pub(super) struct RotatingFile {
    path: PathBuf,
    bytes_max: u64,
    /// Number of old files to keep.
    keep: u32,
    file: File,
    /// The size of the file; `None` for pipes and devices, which never rotate.
    bytes: Option<u64>,
    /// Whether the last byte written was a line end.
    at_line_start: bool,
    /// Whether a partial line was lost, so that the next line needs a line end before it.
    is_broken: bool,
    /// Set by another thread to reopen the file.
    reopens: Arc<AtomicBool>,
}

impl RotatingFile {
    pub(super) fn open(
        path: &Path,
        bytes_max: u64,
        keep: u32,
        reopens: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let (file, bytes) = append_to(path)?;
        Ok(Self {
            path: path.into(),
            bytes_max,
            keep,
            file,
            bytes,
            at_line_start: true,
            is_broken: false,
            reopens,
        })
    }

    fn reopen(&mut self) -> io::Result<()> {
        (self.file, self.bytes) = append_to(&self.path)?;
        Ok(())
    }

    /// Rotates the file. On failure, lines continue in the old file.
    fn rotate(&mut self) {
        let rotated = self.shift_names().and_then(|()| self.reopen());
        if let Err(error) = rotated {
            // Tries again only after the file has grown by the size limit again.
            self.bytes = Some(0);
            tracing::warn!(file = %self.path.display(), %error, "a log cannot be rotated");
        }
    }

    fn shift_names(&self) -> io::Result<()> {
        let numbered = |number: u32| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        for number in (1..self.keep).rev() {
            match fs::rename(numbered(number), numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if self.keep == 0 {
            fs::remove_file(&self.path)
        } else {
            fs::rename(&self.path, numbered(1))
        }
    }

    fn begin_line(&mut self, length: usize) -> io::Result<()> {
        if self.reopens.swap(false, Relaxed) {
            self.reopen()?;
        }
        let is_full = |bytes: u64| bytes > 0 && bytes + length as u64 > self.bytes_max;
        if self.bytes.is_some_and(is_full) {
            self.rotate();
        }
        if self.is_broken {
            self.file.write_all(b"\n")?;
            self.is_broken = false;
        }
        Ok(())
    }
}

impl Write for RotatingFile {
    /// Writes a line, or the rest of a line.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.at_line_start {
            self.begin_line(bytes.len())?;
        }
        match self.file.write(bytes) {
            Ok(count) => {
                self.at_line_start = bytes[..count].ends_with(b"\n");
                self.bytes = self.bytes.map(|size| size + count as u64);
                Ok(count)
            }
            Err(error) => {
                // If the pipe is full, the caller retries the rest of the line. Otherwise the rest
                // is lost.
                let is_retried =
                    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
                if !is_retried {
                    self.is_broken |= !self.at_line_start;
                    self.at_line_start = true;
                }
                Err(error)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens the file; returns its size if it is a regular file.
fn append_to(path: &Path) -> io::Result<(File, Option<u64>)> {
    let file = open_append(path)?;
    let about = file.metadata()?;
    Ok((file, about.is_file().then_some(about.len())))
}
