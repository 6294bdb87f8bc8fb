//! One connection, and the calls that go over it.

use super::batch::Tables;
use super::failure::{Failure, Then};
use super::pack;
use super::script::{self, Script};
use super::single::Singles;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// One connection. It is closed when this is dropped, and never used again once a reply has not come in time: replies belong to calls by their
/// order alone, and a late one must not meet the next caller.
pub(super) struct Link {
    connection: MultiplexedConnection,
    driver: AbortHandle,
    lost: watch::Receiver<bool>,
    deadline: Duration,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("lost", &self.is_lost()).finish_non_exhaustive()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A script call, ready to be sent.
#[derive(Debug)]
pub(super) struct Call {
    script: &'static Script,
    keys: Vec<Vec<u8>>,
    now: String,
    spare_ms: String,
    arguments: [Vec<u8>; 3],
    /// Whether [`Singles`] are decided.
    pub(super) single: bool,
    /// Whether the server is asked for keys of a slot that is not its own yet.
    pub(super) asking: bool,
}

impl Call {
    pub(super) fn new(
        script: &'static Script,
        tables: &Tables,
        program: Vec<u8>,
        now_us: Option<u64>,
        spare: Duration,
    ) -> Self {
        let [numbers, penalties] = tables.packed();
        Self::with(script, tables, [numbers, penalties, program], now_us, spare)
    }

    /// Decides requests with one charge each.
    pub(super) fn single(
        singles: &Singles,
        tables: &Tables,
        now_us: Option<u64>,
        spare: Duration,
    ) -> Self {
        let script = script::single(singles);
        let call = Self::with(script, tables, singles.arguments(), now_us, spare);
        Self { single: true, ..call }
    }

    fn with(
        script: &'static Script,
        tables: &Tables,
        arguments: [Vec<u8>; 3],
        now_us: Option<u64>,
        spare: Duration,
    ) -> Self {
        Self {
            script,
            keys: tables.keys.clone(),
            now: now_us.map_or(String::new(), |us| us.min(pack::MOST).to_string()),
            spare_ms: spare.as_millis().to_string(),
            arguments,
            single: false,
            asking: false,
        }
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.now);
        command.arg(&self.spare_ms).arg(&self.arguments);
        command
    }

    async fn send(&self, command: Cmd, over: &mut MultiplexedConnection) -> Result<Value, Failure> {
        send(&command, self.asking, over).await
    }
}

/// Sends a command, for a slot on its way if `asking`.
async fn send(
    command: &Cmd,
    asking: bool,
    over: &mut MultiplexedConnection,
) -> Result<Value, Failure> {
    if !asking {
        return Ok(command.query_async(over).await?);
    }
    // In one write, since the word counts for the very next command only.
    let mut both = redis::pipe();
    both.cmd("ASKING").add_command(command.clone()).ignore_errors();
    let answers: Vec<redis::RedisResult<Value>> = both.query_async(over).await?;
    match answers.into_iter().next_back() {
        Some(answer) => Ok(answer?),
        None => Err(Failure::timeout()),
    }
}

impl Link {
    pub(super) fn new(
        connection: MultiplexedConnection,
        driver: impl Future<Output = ()> + Send + 'static,
        deadline: Duration,
    ) -> Self {
        let (ended, lost) = watch::channel(false);
        let driver = tokio::spawn(async move {
            driver.await;
            let _ = ended.send(true);
        });
        Self { connection, driver: driver.abort_handle(), lost, deadline }
    }

    /// Whether the other side has closed it.
    pub(super) fn is_lost(&self) -> bool {
        *self.lost.borrow()
    }

    /// Waits until the other side closes it.
    pub(super) async fn lost(&self) {
        // An error means that the driver is gone, which is the same.
        let _ = self.lost.clone().wait_for(|lost| *lost).await;
    }

    /// Makes a script call. The script itself is sent only when the server says that it does not have it, which proves that it did nothing.
    pub(super) async fn call(&self, call: &Call) -> Result<Value, Failure> {
        let mut connection = self.connection.clone();
        let made = async {
            let first = call.send(call.command("EVALSHA", &call.script.sha), &mut connection);
            match first.await {
                Err(Failure { then: Then::Reload, .. }) => {
                    call.send(call.command("EVAL", &call.script.text), &mut connection).await
                }
                made => made,
            }
        };
        timeout(self.deadline, made).await.unwrap_or_else(|_| Err(Failure::timeout()))
    }

    /// Makes any other call.
    pub(super) async fn command(&self, command: &Cmd, asking: bool) -> Result<Value, Failure> {
        let mut connection = self.connection.clone();
        let sent = timeout(self.deadline, send(command, asking, &mut connection)).await;
        sent.unwrap_or_else(|_| Err(Failure::timeout()))
    }
}
