//! Which node is called, and with which token.

use super::client::{Client, ClientError};
use std::path::PathBuf;

/// Where the admin API is, and the token for it.
#[derive(clap::Args)]
pub(in crate::command) struct Target {
    /// Where the admin API listens
    #[arg(
        long,
        global = true,
        env = "TOLLGATE_ADMIN_URL",
        default_value = "http://127.0.0.1:8090"
    )]
    url: String,

    /// A file with the token, instead of TOLLGATE_ADMIN_TOKEN
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Target {
    pub(in crate::command) fn client(&self) -> Result<Client, ClientError> {
        Client::new(&self.url, self.token_file.as_deref())
    }
}
