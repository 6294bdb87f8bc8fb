//! A redis-server of the test's own, on a socket in a directory of its own.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

pub(crate) struct Server {
    child: Child,
    folder: PathBuf,
}

impl Server {
    pub(crate) async fn start() -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("tollgate-store-{}-{number}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let child = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket", "redis.sock"])
            .current_dir(&folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("cannot start redis-server ({error}): install Debian's package")
            });
        let server = Self { child, folder };
        for _ in 0..1_000 {
            if server.client().get_multiplexed_async_connection().await.is_ok() {
                return server;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("redis-server did not answer within 10 s");
    }

    pub(crate) fn client(&self) -> redis::Client {
        let socket = self.folder.join("redis.sock");
        redis::Client::open(format!("redis+unix://{}", socket.display())).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
