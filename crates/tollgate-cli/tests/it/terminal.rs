//! A terminal, for interactive commands.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tollgate_faults::clock::wait_until;

/// A terminal of 80 columns, in Debian's tmux.
pub(crate) struct Terminal(String);

impl Terminal {
    /// Runs a shell command, and stays open after it.
    pub(crate) fn open(command: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let terminal = Self(format!("tollgate-{}-{number}", std::process::id()));
        let command = format!("{command}; sleep 60");
        terminal.tmux(&["new-session", "-d", "-x", "80", "-y", "24", &command]);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.0]).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    pub(crate) fn until(&self, text: &str) {
        let is_shown = wait_until(Duration::from_secs(60), || self.screen().contains(text));
        assert!(is_shown, "no {text:?} in\n{}", self.screen());
    }

    pub(crate) fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
