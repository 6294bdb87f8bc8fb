//! A redis-server for one test, and a minimal client.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs, process, thread};

/// A server on a socket in its own directory. Dropping it ends the server and removes the
/// directory.
pub(crate) struct Server {
    child: Child,
    folder: PathBuf,
    stream: BufReader<UnixStream>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    Nil,
    Integer(i64),
    Text(String),
    List(Vec<Reply>),
}

impl Server {
    pub(crate) fn start() -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("tollgate-lua-{}-{number}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let socket = folder.join("redis.sock");
        let mut child = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(&socket)
            .current_dir(&folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "cannot start redis-server ({error}): install Debian's package `redis-server`"
                )
            });
        for _ in 0..1_000 {
            if let Ok(stream) = UnixStream::connect(&socket) {
                return Self { child, folder, stream: BufReader::new(stream) };
            }
            if let Some(status) = child.try_wait().unwrap() {
                panic!("redis-server ended at once: {status}");
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        panic!("redis-server did not listen on {} within 10 s", socket.display());
    }

    /// Sends one command and waits for its reply; an error reply fails the test.
    pub(crate) fn call<S: AsRef<[u8]>>(&mut self, words: impl IntoIterator<Item = S>) -> Reply {
        let words: Vec<S> = words.into_iter().collect();
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in &words {
            request.extend(format!("${}\r\n", word.as_ref().len()).into_bytes());
            request.extend(word.as_ref());
            request.extend(b"\r\n");
        }
        self.stream.get_mut().write_all(&request).unwrap();
        self.reply()
    }

    /// Runs a script on one key, and returns the texts of its reply.
    pub(crate) fn eval(&mut self, script: &str, key: &str, arguments: &[String]) -> Vec<String> {
        let words = ["EVAL", script, "1", key].into_iter();
        match self.call(words.chain(arguments.iter().map(String::as_str))) {
            Reply::List(rows) => rows.into_iter().map(Reply::text).collect(),
            other => panic!("a list was expected, not {other:?}"),
        }
    }

    fn reply(&mut self) -> Reply {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let (kind, rest) = line.trim_end().split_at(1);
        match (kind, rest) {
            ("$" | "*", "-1") => Reply::Nil,
            ("+", text) => Reply::Text(text.to_owned()),
            (":", number) => Reply::Integer(number.parse().unwrap()),
            ("*", len) => {
                Reply::List((0..len.parse().unwrap()).map(|_: u64| self.reply()).collect())
            }
            ("$", len) => {
                let mut bytes = vec![0; len.parse::<usize>().unwrap() + 2];
                self.stream.read_exact(&mut bytes).unwrap();
                bytes.truncate(bytes.len() - 2);
                Reply::Text(String::from_utf8(bytes).unwrap())
            }
            (_, error) => panic!("redis-server answered: {error}"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Reply {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            other => panic!("a text was expected, not {other:?}"),
        }
    }
}
