//! Seven servers that serve the same resources.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// The paths of the resources. Each answers with `resource` and its path.
const RESOURCES: [&str; 6] = ["/", "/login", "/x/login", "/a/login", "/a/b/login", "/@me"];

/// A server and its name. It ends with the test.
pub(super) struct Origin {
    pub(super) name: &'static str,
    child: Child,
    pub(super) address: SocketAddr,
}

/// All servers, and the folder of their files.
pub(super) struct Origins {
    pub(super) all: Vec<Origin>,
    folder: PathBuf,
}

impl Origins {
    pub(super) fn start() -> Self {
        let folder = super::super::folder();
        let root = folder.join("root");
        for resource in RESOURCES {
            let name = if resource == "/" { "/index.html" } else { resource };
            let file = root.join(&name[1..]);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("resource {resource}")).unwrap();
        }
        let all = vec![
            Origin::start("nginx", &folder, nginx),
            Origin::start("Caddy", &folder, caddy),
            Origin::start("Node", &folder, |port, _| script("node", "paths.js", port)),
            Origin::start("Node with a base", &folder, |port, _| {
                let mut node = script("node", "paths.js", port);
                node.env("WITH_BASE", "1");
                node
            }),
            Origin::start("Flask", &folder, |port, _| script("python3", "paths.py", port)),
            Origin::start("http.server", &folder, |port, folder| {
                let mut python = Command::new("python3");
                python.args(["-m", "http.server", &port.to_string(), "--bind", "127.0.0.1"]);
                python.arg("--directory").arg(folder.join("root"));
                python
            }),
            Origin::start("Caddy's matcher", &folder, caddy_matcher),
        ];
        Self { all, folder }
    }
}

impl Drop for Origins {
    fn drop(&mut self) {
        self.all.clear();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn nginx(port: u16, folder: &Path) -> Command {
    let conf = format!(
        "daemon off; master_process off; pid nginx.pid;\nevents {{}}\nhttp {{\n access_log off;\n default_type text/plain;\n \
         server {{ listen 127.0.0.1:{port}; root {}/root; }}\n}}\n",
        folder.display()
    );
    fs::write(folder.join("nginx.conf"), conf).unwrap();
    let mut nginx = Command::new("nginx");
    nginx.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf")).args(["-e", "stderr"]);
    nginx
}

fn caddy(port: u16, folder: &Path) -> Command {
    let file = format!(
        "{{\n admin off\n auto_https off\n}}\nhttp://:{port} {{\n bind 127.0.0.1\n root * {}/root\n file_server\n}}\n",
        folder.display()
    );
    fs::write(folder.join("Caddyfile"), file).unwrap();
    let mut caddy = Command::new("caddy");
    caddy.arg("run").arg("--config").arg(folder.join("Caddyfile")).args(["--adapter", "caddyfile"]);
    caddy
}

/// Caddy with a route for each resource instead of files. Its matcher ignores case, which limits do
/// not, so upper case gets 404.
fn caddy_matcher(port: u16, folder: &Path) -> Command {
    let routes = RESOURCES.map(|path| format!("  respond {path} \"resource {path}\" 200\n"));
    let file = format!(
        "{{\n admin off\n auto_https off\n}}\nhttp://:{port} {{\n bind 127.0.0.1\n route {{\n  @upper path_regexp [A-Z]\n  \
         respond @upper 404\n{}  respond 404\n }}\n}}\n",
        routes.concat()
    );
    let config = folder.join("Caddyfile.matcher");
    fs::write(&config, file).unwrap();
    let mut caddy = Command::new("caddy");
    caddy.arg("run").arg("--config").arg(config).args(["--adapter", "caddyfile"]);
    caddy
}

fn script(program: &str, file: &str, port: u16) -> Command {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers").join(file);
    let mut command = Command::new(program);
    command.arg(path).arg(port.to_string()).args(RESOURCES);
    command
}

impl Origin {
    fn start(name: &'static str, folder: &Path, command: impl Fn(u16, &Path) -> Command) -> Self {
        let log = folder.join(format!("{name}.log"));
        for _ in 0..5 {
            // Another process may take the free port first; then the next try uses another.
            let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let output = fs::File::create(&log).unwrap();
            let mut command = command(address.port(), folder);
            command.current_dir(folder).stdin(Stdio::null());
            command.stdout(output.try_clone().unwrap()).stderr(output);
            let child = command.spawn().unwrap_or_else(|why| panic!("{command:?}: {why}"));
            let mut origin = Self { name, child, address };
            if origin.is_up() {
                return origin;
            }
        }
        panic!("{name} does not start:\n{}", fs::read_to_string(log).unwrap_or_default());
    }

    fn is_up(&mut self) -> bool {
        loop {
            if TcpStream::connect(self.address).is_ok() {
                return true;
            }
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server's answer to a raw target: the resource that it serves, or the status.
pub(super) fn ask(address: SocketAddr, target: &[u8]) -> Result<String, String> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(super::super::PATIENCE)).unwrap();
    let rest = b" HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    let request = [b"GET ", target, rest].concat();
    stream.write_all(&request).unwrap();
    let mut answer = Vec::new();
    // Some servers reset a connection after a bad request.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).unwrap_or("none").to_owned();
    match answer
        .split_once("\r\n\r\n")
        .and_then(|(_, body)| body.find("resource /").map(|at| &body[at..]))
    {
        Some(body) if status == "200" => {
            let line = body.lines().next().unwrap_or_default();
            Ok(line.trim_start_matches("resource ").to_owned())
        }
        _ => Err(status),
    }
}
