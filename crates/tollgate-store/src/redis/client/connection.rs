//! One connection, and the script calls that it sends.

use super::failure::{Failure, FailureAction};
use crate::StoreErrorKind;
use crate::redis::batch::fast_batch::{FastBatch, SingleChargeBatch};
use crate::redis::batch::queue::BatchScope;
use crate::redis::batch::rows::bytes;
use crate::redis::batch::{Batch, ScriptTables};
use crate::redis::script::{self, Script, msgpack};
use crate::redis::sentinel::PrimaryWatch;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// One connection, closed when dropped. After a timeout it is never reused: replies match calls
/// only by order, so a late reply would reach the next caller.
pub(crate) struct Link {
    connection: MultiplexedConnection,
    driver: AbortHandle,
    closed: watch::Receiver<bool>,
    /// Signals when another server becomes the primary.
    primary_watch: Option<PrimaryWatch>,
    deadline: Duration,
    /// The server's `connects` at the time of this connection.
    pub(crate) number: u64,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("closed", &self.is_closed()).finish_non_exhaustive()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Arguments besides keys: command, digest, number of keys, instant, TTL margin, and three more.
const FIXED_ARGUMENTS: usize = 8;
/// Limit of the total size of the short arguments.
const FIXED_BYTES: usize = 128;

/// A script call, ready to be sent.
#[derive(Debug)]
pub(crate) struct ScriptCall {
    script: &'static Script,
    /// The command that runs the script by its digest.
    command: Cmd,
    /// The command that sends the script's text: `EVAL` or `EVAL_RO`.
    eval_command: &'static str,
    /// Whether this call decides a [`SingleChargeBatch`].
    pub(crate) single: bool,
    /// Whether to send `ASKING` first, for a slot that migrates to the server.
    pub(crate) asking: bool,
}

impl ScriptCall {
    pub(crate) fn new(
        script: &'static Script,
        tables: &ScriptTables,
        program: Vec<u8>,
        now_us: Option<u64>,
        ttl_margin: Duration,
    ) -> Self {
        let [params, penalties] = tables.packed();
        let arguments = [params, penalties, program];
        Self::with(script, tables, BatchScope::Server, &arguments, now_us, ttl_margin)
    }

    /// The call that decides a batch, with the cheapest suitable script.
    pub(crate) fn decide(
        batch: &Batch,
        scope: BatchScope,
        now_us: Option<u64>,
        ttl_margin: Duration,
    ) -> Self {
        let with = |script, arguments: &[Vec<u8>; 3]| {
            Self::with(script, &batch.tables, scope, arguments, now_us, ttl_margin)
        };
        if let Some(singles) = SingleChargeBatch::of(batch) {
            let script = script::fast(true, singles.kinds.has_windows(), scope);
            return Self { single: true, ..with(script, &singles.into_arguments()) };
        }
        if let Some(fast) = FastBatch::of(batch) {
            let script = script::fast(false, fast.kinds.has_windows(), scope);
            return with(script, &fast.into_arguments());
        }
        let [params, penalties] = batch.tables.packed();
        let script = script::decide(&batch.tables, batch.has_special_modes(), scope);
        with(script, &[params, penalties, batch.program()])
    }

    fn with(
        script: &'static Script,
        tables: &ScriptTables,
        scope: BatchScope,
        arguments: &[Vec<u8>; 3],
        now_us: Option<u64>,
        ttl_margin: Duration,
    ) -> Self {
        let bytes = |parts: &[Vec<u8>]| parts.iter().map(Vec::len).sum::<usize>();
        let (keys, rest) = (tables.keys.len(), bytes(&tables.keys) + bytes(arguments));
        let mut command = Cmd::with_capacity(FIXED_ARGUMENTS + keys, FIXED_BYTES + rest);
        command.arg("EVALSHA").arg(&*script.sha);
        // Redis refuses declared keys of several slots, even with `allow-cross-slot-keys`.
        let declares_keys = scope != BatchScope::Primary;
        if declares_keys {
            command.arg(keys).arg(&tables.keys)
        } else {
            command.arg(0)
        };
        match now_us {
            None => command.arg(""),
            Some(us) => command.arg(us.min(msgpack::MOST)),
        };
        command.arg(ttl_margin.as_millis() as u64).arg(arguments);
        if !declares_keys {
            command.arg(&tables.keys);
        }
        Self { script, command, eval_command: "EVAL", single: false, asking: false }
    }

    /// Turns the call into a read-only one, for Redis 7 and later, and Valkey.
    pub(crate) fn read_only(self) -> Self {
        let mut command = redis::cmd("EVALSHA_RO");
        copy_arguments(&self.command, 1, &mut command);
        Self { command, eval_command: "EVAL_RO", ..self }
    }

    /// The digest of the script.
    pub(crate) fn script(&self) -> &'static str {
        &self.script.sha
    }

    /// The command with the script's text.
    fn with_script_text(&self) -> Cmd {
        let mut command = redis::cmd(self.eval_command);
        command.arg(&*self.script.text);
        copy_arguments(&self.command, 2, &mut command);
        command
    }

    async fn send(
        &self,
        read_key: Option<&[u8]>,
        over: &mut MultiplexedConnection,
    ) -> Result<(Value, Option<KeyRead>), Failure> {
        match send(&self.command, self.asking, read_key, over).await {
            Err(Failure { action: FailureAction::SendScript, .. }) => {
                send(&self.with_script_text(), self.asking, read_key, over).await
            }
            result => result,
        }
    }
}

/// The value of a key that was read after a command.
pub(crate) type KeyRead = Result<Option<Vec<u8>>, Failure>;

/// Appends the arguments of `from` after the first `skipped`.
fn copy_arguments(from: &Cmd, skipped: usize, to: &mut Cmd) {
    for argument in from.args_iter().skip(skipped) {
        if let redis::Arg::Simple(bytes) = argument {
            to.arg(bytes);
        }
    }
}

/// Sends a command, after `ASKING` if the slot migrates to this server. Also returns the value of
/// `read_key` after the command.
async fn send(
    command: &Cmd,
    asking: bool,
    read_key: Option<&[u8]>,
    over: &mut MultiplexedConnection,
) -> Result<(Value, Option<KeyRead>), Failure> {
    if !asking && read_key.is_none() {
        return Ok((command.query_async(over).await?, None));
    }
    // In one write, because `ASKING` covers only the very next command.
    let mut all = redis::pipe();
    if asking {
        all.cmd("ASKING");
    }
    all.add_command(command.clone());
    if let Some(key) = read_key {
        all.cmd("GET").arg(key);
    }
    let answers: Vec<redis::RedisResult<Value>> = all.ignore_errors().query_async(over).await?;
    let mut answers = answers.into_iter().skip(usize::from(asking));
    let answer = answers.next().ok_or_else(Failure::timeout)??;
    let read = answers.next().map(|value| Ok(bytes(value?).flatten()));
    Ok((answer, read))
}

impl Link {
    pub(crate) fn new(
        connection: MultiplexedConnection,
        driver: impl Future<Output = ()> + Send + 'static,
        deadline: Duration,
    ) -> Self {
        let (ended, closed) = watch::channel(false);
        let driver = tokio::spawn(async move {
            driver.await;
            let _ = ended.send(true);
        });
        let driver = driver.abort_handle();
        Self { connection, driver, closed, primary_watch: None, deadline, number: 0 }
    }

    pub(crate) const fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    pub(crate) const fn with_number(mut self, number: u64) -> Self {
        self.number = number;
        self
    }

    /// Closes the connection when another server becomes the primary.
    pub(crate) fn while_primary(mut self, watch: PrimaryWatch) -> Self {
        self.primary_watch = Some(watch);
        self
    }

    /// Whether the server closed the connection, or another server is the primary.
    pub(crate) fn is_closed(&self) -> bool {
        *self.closed.borrow() || self.has_primary_moved()
    }

    pub(crate) fn has_primary_moved(&self) -> bool {
        self.primary_watch.as_ref().is_some_and(PrimaryWatch::has_moved)
    }

    /// Waits until the server closes the connection, or another server is the primary.
    pub(crate) async fn closed(&self) {
        let mut closed = self.closed.clone();
        let moved = async {
            match &self.primary_watch {
                Some(watch) => watch.moved().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // An error means that the driver task has ended.
            _ = closed.wait_for(|closed| *closed) => {}
            () = moved => {}
        }
    }

    /// Calls a script by its digest. Sends the text only after NOSCRIPT, which proves that the
    /// server did nothing.
    pub(crate) async fn call(&self, call: &ScriptCall) -> Result<Value, Failure> {
        self.call_and_get(call, None).await.map(|(value, _)| value)
    }

    /// Calls a script, and reads a key right after it.
    pub(crate) async fn call_and_get(
        &self,
        call: &ScriptCall,
        read_key: Option<&[u8]>,
    ) -> Result<(Value, Option<KeyRead>), Failure> {
        let mut connection = self.connection.clone();
        let sent = timeout(self.deadline, call.send(read_key, &mut connection)).await;
        sent.unwrap_or_else(|_| Err(Failure::timeout()))
    }

    /// Whether the server's scripts may use keys of several slots. The test uses `EVAL_RO`, which
    /// came with that feature and also runs on a replica. A user without the right to it gets one
    /// call per slot.
    pub(crate) async fn spans_slots(&self, within: Duration) -> Result<bool, Failure> {
        let mut command = redis::cmd("EVAL_RO");
        command.arg("#!lua flags=no-writes,allow-cross-slot-keys\nreturn 1").arg(0);
        let mut connection = self.connection.clone();
        match timeout(within, send(&command, false, None, &mut connection)).await {
            Ok(Ok((answer, _))) => Ok(answer == Value::Int(1)),
            Ok(Err(failure)) if failure.error.kind == StoreErrorKind::Rejected => Ok(false),
            Ok(Err(Failure { action: FailureAction::NotLocal, .. })) => Ok(false),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(Failure::timeout()),
        }
    }

    /// Runs a command other than a script.
    pub(crate) async fn command(&self, command: &Cmd, asking: bool) -> Result<Value, Failure> {
        let mut connection = self.connection.clone();
        let sent = timeout(self.deadline, send(command, asking, None, &mut connection)).await;
        sent.unwrap_or_else(|_| Err(Failure::timeout())).map(|(value, _)| value)
    }
}
