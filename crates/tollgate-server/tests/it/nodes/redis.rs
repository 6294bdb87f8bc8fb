//! A redis-server of the test's own, that can be killed and started again.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs, process, thread};

pub(crate) struct Redis {
    child: Child,
    folder: PathBuf,
    arguments: Vec<String>,
}

impl Redis {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// With further arguments, such as a user.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("tollgate-nodes-{}-{number}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        let child = spawn(&folder, &arguments);
        let redis = Self { child, folder, arguments };
        redis.wait();
        redis
    }

    /// As it would be after a power cut.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn restart(&mut self) {
        self.child = spawn(&self.folder, &self.arguments);
        self.wait();
    }

    pub(crate) fn url(&self) -> String {
        format!("unix://{}", self.folder.join("redis.sock").display())
    }

    pub(crate) fn connection(&self) -> redis::RedisResult<redis::Connection> {
        let socket = self.folder.join("redis.sock");
        redis::Client::open(format!("redis+unix://{}", socket.display()))?.get_connection()
    }

    /// How many scripts it has run.
    pub(crate) fn scripts_run(&self) -> u64 {
        let mut connection = self.connection().unwrap();
        let stats: String = redis::cmd("INFO").arg("commandstats").query(&mut connection).unwrap();
        let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
    }

    fn wait(&self) {
        for _ in 0..3_000 {
            let mut connection = self.connection();
            let pong = connection.as_mut().map(|one| redis::cmd("PING").exec(one));
            // Before it has loaded its data it answers, but not with this; without the right to ask it is there all the same.
            if matches!(pong, Ok(Ok(())))
                || self.arguments.iter().any(|one| one == "--user") && pong.is_ok()
            {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("redis-server did not answer within 30 s");
    }
}

fn spawn(folder: &PathBuf, arguments: &[String]) -> Child {
    Command::new("redis-server")
        .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket", "redis.sock"])
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("cannot start redis-server ({error}): install Debian's package")
        })
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
