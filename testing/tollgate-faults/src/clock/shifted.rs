//! A wall clock for a child process, which can jump while the process runs.

use crate::temp_dir::TempDir;
use std::fs;
use std::process::Command;

const SOURCE: &str = include_str!("shifted.c");

/// The clock, as a preloaded library. It needs a C compiler, as the build does.
#[derive(Debug)]
pub struct ShiftedClock(TempDir);

impl ShiftedClock {
    /// Creates a clock without a shift.
    pub fn new() -> Self {
        let clock = Self(TempDir::new("clock"));
        clock.0.put("shifted.c", SOURCE);
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o", "shifted.so", "shifted.c"]);
        let compiled = compiler.current_dir(clock.0.path()).status();
        assert!(compiled.is_ok_and(|status| status.success()), "no C compiler is installed");
        fs::write(clock.path("shift"), [0; 8]).expect("a file in a folder of one's own");
        clock
    }

    /// Sets the shift of the clock; negative is behind.
    pub fn set(&self, ahead_us: i64) {
        use std::os::unix::fs::FileExt;
        // Writes in place, since the process has mapped this file.
        let file = fs::OpenOptions::new().write(true).open(self.path("shift"));
        let set = file.and_then(|file| file.write_all_at(&ahead_us.to_ne_bytes(), 0));
        set.expect("a file in a folder of one's own");
    }

    /// The environment of a process with this clock.
    pub(crate) fn environment(&self) -> [(&'static str, String); 2] {
        [("LD_PRELOAD", self.path("shifted.so")), ("TOLLGATE_CLOCK_SHIFT", self.path("shift"))]
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

impl Default for ShiftedClock {
    fn default() -> Self {
        Self::new()
    }
}
