//! What the admin API needs of reloads.

use super::{Reload, ReloadError};
use crate::config::ConfigError;
use crate::front::admin::{Access, Control, LastReload, Origin, ReloadFailure, Reloading};
use arc_swap::ArcSwap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The file, how the last reload of it went, and whom the file in force lets in.
#[derive(Debug)]
pub(crate) struct Journal {
    file: Option<PathBuf>,
    access: ArcSwap<Access>,
    last: Mutex<Option<LastReload>>,
}

/// What the admin API may do to the process.
#[derive(Debug)]
pub(crate) struct AdminControl {
    pub(crate) reload: Reload,
    pub(crate) journal: Arc<Journal>,
}

impl Journal {
    pub(super) fn new(file: Option<&Path>, access: Access) -> Self {
        let file = file.map(Path::to_owned);
        Self { file, access: ArcSwap::from_pointee(access), last: Mutex::default() }
    }

    pub(super) fn set_access(&self, access: Access) {
        self.access.store(Arc::new(access));
    }

    /// Notes a reload, and why it failed if it did.
    pub(super) fn note(&self, time_us: u64, error: Option<&ConfigError>) {
        let last = LastReload { time_us, error: error.map(ToString::to_string) };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
    }
}

impl Control for AdminControl {
    fn reload(&self) -> Reloading<'_> {
        Box::pin(async {
            let failed = match self.reload.now().await {
                Ok(_) => return Ok(()),
                Err(failed) => failed,
            };
            let message = failed.to_string();
            let diagnostics = match failed {
                ReloadError::Config(ConfigError::Invalid { diagnostics, .. }) => diagnostics,
                _ => Vec::new(),
            };
            Err(ReloadFailure { message, diagnostics })
        })
    }

    fn origin(&self) -> Origin {
        let last_reload = self.last_reload();
        Origin { file: self.journal.file.clone(), last_reload }
    }

    fn access(&self) -> Arc<Access> {
        self.journal.access.load_full()
    }
}

impl AdminControl {
    fn last_reload(&self) -> Option<LastReload> {
        self.journal.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
