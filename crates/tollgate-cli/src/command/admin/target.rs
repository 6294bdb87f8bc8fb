//! The node to call, and the token.

use super::client::{Client, ClientError};
use std::path::PathBuf;

/// The environment variable with the URL.
pub(crate) const VARIABLE: &str = "TOLLGATE_ADMIN_URL";

/// The URL of the admin API, and the token for it.
#[derive(clap::Args)]
pub(crate) struct Target {
    /// The URL of the admin API
    #[arg(
        long,
        global = true,
        env = VARIABLE,
        default_value = "http://127.0.0.1:8090"
    )]
    url: String,

    /// A file with the token, instead of TOLLGATE_ADMIN_TOKEN
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Target {
    /// Creates the target at this URL.
    pub(crate) const fn new(url: String, token_file: Option<PathBuf>) -> Self {
        Self { url, token_file }
    }

    pub(crate) fn client(&self) -> Result<Client, ClientError> {
        Client::new(&self.url, self.token_file.as_deref())
    }
}
