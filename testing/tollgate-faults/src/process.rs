//! Child processes, killed by pid when their owner is dropped.

use std::collections::BTreeSet;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The pids of all running children.
static LIVE: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// A child process.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts a program.
    pub fn spawn(command: &mut Command) -> std::io::Result<Self> {
        let child = command.spawn()?;
        live().insert(child.id());
        Ok(Self(child))
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// The child of the standard library.
    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Sends a signal, by name.
    pub fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// The exit status, if the process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().ok().flatten()
    }

    /// Waits for the process to end.
    pub fn wait(&mut self) -> std::io::Result<ExitStatus> {
        let status = self.0.wait();
        live().remove(&self.id());
        status
    }

    /// Kills the process, like a power cut.
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.wait();
    }

    /// Resident memory, in KiB.
    pub fn rss_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Kills all remaining children.
pub fn end_all() {
    live().iter().for_each(|id| signal(*id, "KILL"));
}

fn signal(id: u32, name: &str) {
    let status = Command::new("kill").args(["-s", name, &id.to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "cannot send {name} to {id}");
}

fn live() -> MutexGuard<'static, BTreeSet<u32>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}
