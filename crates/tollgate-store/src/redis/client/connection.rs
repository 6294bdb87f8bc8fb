//! One connection, and the calls that go over it.

use super::failure::{Failure, FailureAction};
use crate::redis::batch::ScriptTables;
use crate::redis::batch::single_charge::SingleChargeBatch;
use crate::redis::script::{self, Script, msgpack};
use crate::redis::sentinel::PrimaryWatch;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// One connection. It is closed when this is dropped, and never used again once a reply has not
/// come in time: replies belong to calls by their order alone, and a late one must not meet the
/// next caller.
pub(crate) struct Link {
    connection: MultiplexedConnection,
    driver: AbortHandle,
    lost: watch::Receiver<bool>,
    /// For how long it leads to the right server.
    primary_watch: Option<PrimaryWatch>,
    deadline: Duration,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("lost", &self.is_closed()).finish_non_exhaustive()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// What a call has besides keys and what is decided: the name, the digest, how many keys, the
/// instant, how long a key is spared, and three arguments.
const FIXED_ARGUMENTS: usize = 8;
/// At most, of those that are short.
const FIXED_BYTES: usize = 128;

/// A script call, ready to be sent.
#[derive(Debug)]
pub(crate) struct ScriptCall {
    script: &'static Script,
    /// By the script's digest.
    command: Cmd,
    /// The command that sends the script itself.
    eval_command: &'static str,
    /// Whether [`SingleChargeBatch`] are decided.
    pub(crate) single: bool,
    /// Whether the server is asked for keys of a slot that is not its own yet.
    pub(crate) asking: bool,
}

impl ScriptCall {
    pub(crate) fn new(
        script: &'static Script,
        tables: &ScriptTables,
        program: Vec<u8>,
        now_us: Option<u64>,
        spare: Duration,
    ) -> Self {
        let [params, penalties] = tables.packed();
        Self::with(script, tables, &[params, penalties, program], now_us, spare)
    }

    /// Decides requests with one charge each.
    pub(crate) fn single(
        singles: &SingleChargeBatch,
        tables: &ScriptTables,
        now_us: Option<u64>,
        spare: Duration,
    ) -> Self {
        let script = script::single_charge(singles);
        let call = Self::with(script, tables, &singles.arguments(), now_us, spare);
        Self { single: true, ..call }
    }

    fn with(
        script: &'static Script,
        tables: &ScriptTables,
        arguments: &[Vec<u8>; 3],
        now_us: Option<u64>,
        spare: Duration,
    ) -> Self {
        let bytes = |parts: &[Vec<u8>]| parts.iter().map(Vec::len).sum::<usize>();
        let (keys, rest) = (tables.keys.len(), bytes(&tables.keys) + bytes(arguments));
        let mut command = Cmd::with_capacity(FIXED_ARGUMENTS + keys, FIXED_BYTES + rest);
        command.arg("EVALSHA").arg(&*script.sha).arg(keys).arg(&tables.keys);
        match now_us {
            None => command.arg(""),
            Some(us) => command.arg(us.min(msgpack::MOST)),
        };
        command.arg(spare.as_millis() as u64).arg(arguments);
        Self { script, command, eval_command: "EVAL", single: false, asking: false }
    }

    /// The same as a call that cannot write, for Redis 7 and later, and Valkey.
    pub(crate) fn read_only(self) -> Self {
        let mut command = redis::cmd("EVALSHA_RO");
        copy_arguments(&self.command, 1, &mut command);
        Self { command, eval_command: "EVAL_RO", ..self }
    }

    /// Which script it is of.
    pub(crate) fn script(&self) -> &'static str {
        &self.script.sha
    }

    /// The same with the script itself.
    fn with_script_text(&self) -> Cmd {
        let mut command = redis::cmd(self.eval_command);
        command.arg(&*self.script.text);
        copy_arguments(&self.command, 2, &mut command);
        command
    }

    async fn send(&self, over: &mut MultiplexedConnection) -> Result<Value, Failure> {
        match send(&self.command, self.asking, over).await {
            Err(Failure { action: FailureAction::SendScript, .. }) => {
                send(&self.with_script_text(), self.asking, over).await
            }
            made => made,
        }
    }
}

/// Adds the arguments of `from`, all but the first few.
fn copy_arguments(from: &Cmd, skipped: usize, to: &mut Cmd) {
    for argument in from.args_iter().skip(skipped) {
        if let redis::Arg::Simple(bytes) = argument {
            to.arg(bytes);
        }
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
    pub(crate) fn new(
        connection: MultiplexedConnection,
        driver: impl Future<Output = ()> + Send + 'static,
        deadline: Duration,
    ) -> Self {
        let (ended, lost) = watch::channel(false);
        let driver = tokio::spawn(async move {
            driver.await;
            let _ = ended.send(true);
        });
        Self { connection, driver: driver.abort_handle(), lost, primary_watch: None, deadline }
    }

    /// The same with another deadline.
    pub(crate) const fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The same for as long as the server is the primary.
    pub(crate) fn while_primary(mut self, stay: PrimaryWatch) -> Self {
        self.primary_watch = Some(stay);
        self
    }

    /// Whether the other side has closed it, or another server is the primary.
    pub(crate) fn is_closed(&self) -> bool {
        *self.lost.borrow() || self.has_primary_moved()
    }

    /// Whether another server is the primary.
    pub(crate) fn has_primary_moved(&self) -> bool {
        self.primary_watch.as_ref().is_some_and(PrimaryWatch::has_moved)
    }

    /// Waits until the other side closes it, or another server is the primary.
    pub(crate) async fn closed(&self) {
        let mut closed = self.lost.clone();
        let over = async {
            match &self.primary_watch {
                Some(stay) => stay.moved().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // An error means that the driver is gone, which is the same.
            _ = closed.wait_for(|lost| *lost) => {}
            () = over => {}
        }
    }

    /// Makes a script call. The script itself is sent only when the server says that it does not
    /// have it, which proves that it did nothing.
    pub(crate) async fn call(&self, call: &ScriptCall) -> Result<Value, Failure> {
        let mut connection = self.connection.clone();
        timeout(self.deadline, call.send(&mut connection))
            .await
            .unwrap_or_else(|_| Err(Failure::timeout()))
    }

    /// Makes any other call.
    pub(crate) async fn command(&self, command: &Cmd, asking: bool) -> Result<Value, Failure> {
        let mut connection = self.connection.clone();
        let sent = timeout(self.deadline, send(command, asking, &mut connection)).await;
        sent.unwrap_or_else(|_| Err(Failure::timeout()))
    }
}
