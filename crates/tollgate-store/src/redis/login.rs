//! The first words over a connection.

use super::failure::{Failure, FailureAction};
use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Value};

/// Who connects, and to which database.
pub(super) struct Login {
    /// The arguments of `AUTH`.
    credentials: Vec<String>,
    database: u32,
}

impl Login {
    pub(super) fn new(username: &Option<String>, password: &Option<String>, database: u32) -> Self {
        // Nobody logs in without a password: a user of its own has an empty one then, and is not to
        // become the default user.
        let empty = username.as_ref().map(|_| String::new());
        let password = password.clone().or(empty);
        Self { credentials: username.clone().into_iter().chain(password).collect(), database }
    }

    /// Logs in. Said here and not by the client, which keeps why it was refused to itself.
    pub(super) async fn authenticate(
        &self,
        mut connection: MultiplexedConnection,
    ) -> Result<(), Failure> {
        let mut words = redis::pipe();
        words.ignore_errors();
        if !self.credentials.is_empty() {
            words.cmd("AUTH").arg(&self.credentials);
        }
        if self.database != 0 {
            words.cmd("SELECT").arg(self.database);
        }
        let says_nothing = words.is_empty();
        if says_nothing {
            // A server that is full accepts a connection, and says so only to whoever asks for
            // something.
            words.cmd("PING");
        }
        let answers: Vec<RedisResult<Value>> = words.query_async(&mut connection).await?;
        for failure in answers.into_iter().filter_map(|answer| answer.err().map(Failure::from)) {
            if !says_nothing || failure.action == FailureAction::Reconnect {
                return Err(failure);
            }
        }
        Ok(())
    }
}
