//! The recipes of `docs/recipes/` when Tollgate stops before or during a call.

use super::serve::process::{Folder, Process, post};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter of each kind of recipe, and its folder.
const LANGUAGES: [(&str, &str); 3] = [("python3", "python"), ("node", "node"), ("sh", "shell")];

/// Imports all three recipes of a language.
const IMPORTS: [&str; 3] = [
    "import check, reserve, retry",
    "import { check } from './check.mjs'; import { reserved, Refused } from './reserve.mjs'; \
     import { waitUntilAllowed } from './retry.mjs';",
    ". ./check.sh; . ./reserve.sh; . ./retry.sh",
];

/// Sends `SIGNAL` to Tollgate, and waits until all of its threads have stopped. `kill` returns
/// before that, and a running thread could still answer a request.
const HALT: &str = r#"
kill -s "$SIGNAL" "$TOLLGATE_PID"
tries=0
while cat /proc/"$TOLLGATE_PID"/task/*/status 2>/dev/null | grep -q '^State:[[:space:]][^TtZX]'
do
    tries=$((tries + 1))
    [ "$tries" -lt 1000 ] || exit 9
    sleep 0.01
done
"#;

/// Reserves, ends Tollgate with the signal during the work, and prints the result of the work.
const STOP_DURING_WORK: [&str; 3] = [
    "import os, sys
from reserve import reserved
with reserved({'user': 'ann', 'action': 'complete'}, 500) as used:
    os.system(os.environ['HALT'])
    used.append(120)
    print('worked')
print('kept')
",
    "import { execSync } from 'node:child_process';
import { reserved } from './reserve.mjs';
const { text } = await reserved({ user: 'ann', action: 'complete' }, 500, async () => {
  execSync(process.env.HALT);
  console.log('worked');
  return { text: 'kept', used: 120 };
});
console.log(text);
",
    ". ./reserve.sh
work() {
    eval \"$HALT\"
    printf 'worked\\n120\\n'
}
reserved ann 500 work && echo kept
",
];

/// The same with work that fails: the error of the work must come out, not Tollgate's.
const FAIL_DURING_WORK: [&str; 3] = [
    "import os
from reserve import reserved
try:
    with reserved({'user': 'ann', 'action': 'complete'}, 500) as used:
        os.system(os.environ['HALT'])
        raise KeyError('mine')
except KeyError:
    print('mine')
",
    "import { execSync } from 'node:child_process';
import { reserved } from './reserve.mjs';
try {
  await reserved({ user: 'ann', action: 'complete' }, 500, async () => {
    execSync(process.env.HALT);
    throw new Error('mine');
  });
} catch (error) {
  console.log(error.message);
}
",
    ". ./reserve.sh
work() {
    eval \"$HALT\"
    return 1
}
reserved ann 500 work >/dev/null || echo mine
",
];

/// Is admitted once, ends Tollgate, and checks again.
const STOP_BETWEEN_TRIES: [&str; 3] = [
    "import os
from retry import wait_until_allowed
who = {'user': 'ann', 'action': 'send'}
print(wait_until_allowed(who))
os.system(os.environ['HALT'])
print(wait_until_allowed(who))
",
    "import { execSync } from 'node:child_process';
import { waitUntilAllowed } from './retry.mjs';
const who = { user: 'ann', action: 'send' };
const show = (sent) => console.log(sent ? 'True' : 'False');
show(await waitUntilAllowed(who));
execSync(process.env.HALT);
show(await waitUntilAllowed(who));
",
    ". ./retry.sh
show() { if wait_until_allowed ann 1; then echo True; else echo False; fi; }
show
eval \"$HALT\"
show
",
];

fn recipes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes")
}

/// A Tollgate with the recipes' policy, and its address.
fn started(name: &str) -> (Folder, Process, String) {
    let policy = std::fs::read_to_string(recipes().join("tollgate.yaml")).unwrap();
    let folder = Folder::with(name, &policy);
    let listen = ["serve", "--listen", "http=127.0.0.1:0", "--listen", "admin=127.0.0.1:0"];
    let mut process = Process::start(&folder.0, &listen, &[]);
    let address = process.address("http");
    (folder, process, address)
}

/// Runs `program` in the folder of its recipes, against `address`.
fn command(language: usize, program: &str, address: &str) -> Command {
    let (interpreter, place) = LANGUAGES[language];
    let mut command = Command::new(interpreter);
    match interpreter {
        "node" => command.args(["--input-type=module", "-e", program]),
        _ => command.args(["-c", program]),
    };
    command
        .current_dir(recipes().join(place))
        .env("TOLLGATE_URL", format!("http://{address}"))
        .env("TOLLGATE_TIMEOUT", "20")
        .env("TOLLGATE_WAIT", "2")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("NO_PROXY", "*")
        .env_remove("FAIL");
    command
}

/// Standard output and standard error of a command that must succeed.
#[track_caller]
fn output(command: &mut Command) -> (String, String) {
    let output = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{stdout}\n{stderr}", output.status);
    (stdout, stderr)
}

#[test]
fn importing_a_recipe_spends_no_quota() {
    let (_folder, _process, address) = started("recipes-import");
    for (language, program) in IMPORTS.iter().enumerate() {
        let (out, err) = output(&mut command(language, program, &address));
        assert_eq!((out.as_str(), err.as_str()), ("", ""), "{program}");
    }
    for (action, whole) in [("view", 2), ("send", 1), ("complete", 1000)] {
        let body = format!(r#"{{"attributes": {{"user": "42", "action": "{action}"}}}}"#);
        let (_, answer) = post(&address, "/v1/peek", &body);
        assert!(answer.contains(&format!("\"remaining\":{whole},")), "{answer}");
    }
}

/// Killed, so that the port is closed; and stopped, so that the kernel accepts and no answer comes.
const SIGNALS: [(&str, &str); 2] = [("KILL", "20"), ("STOP", "1")];

fn during(language: usize, name: &str, program: &str, fail: &str, check: impl Fn(&str, &str)) {
    for (signal, timeout) in SIGNALS {
        let (_folder, process, address) = started(&format!("{name}-{language}-{signal}"));
        let mut command = command(language, program, &address);
        command
            .env("HALT", HALT)
            .env("SIGNAL", signal)
            .env("TOLLGATE_PID", process.id().to_string());
        command.env("TOLLGATE_TIMEOUT", timeout).env("FAIL", fail);
        let (out, err) = output(&mut command);
        check(&out, &err);
        assert!(err.contains("tollgate did not answer"), "{err}");
    }
}

fn reserve_keeps_the_result(language: usize) {
    during(language, "recipes-during", STOP_DURING_WORK[language], "open", |out, err| {
        assert_eq!(out, "worked\nkept\n", "{err}");
        assert!(err.contains("not ended: the estimate stays charged"), "{err}");
    });
    during(language, "recipes-failing", FAIL_DURING_WORK[language], "closed", |out, err| {
        assert_eq!(out, "mine\n", "{err}");
    });
}

fn retry_goes_on_or_gives_up(language: usize) {
    for (fail, expected) in [("open", "True\nTrue\n"), ("closed", "True\nFalse\n")] {
        let name = format!("recipes-between-{fail}");
        during(language, &name, STOP_BETWEEN_TRIES[language], fail, |out, err| {
            assert_eq!(out, expected, "{fail}: {err}");
        });
    }
}

/// The recipes as programs, after Tollgate has ended.
fn stopped_before(language: usize) {
    let (_folder, mut process, address) = started(&format!("recipes-before-{language}"));
    process.signal("TERM");
    assert!(process.end().success());
    let (interpreter, place) = LANGUAGES[language];
    let rows = [
        ("reserve", "open", ["HELLO\n", "A LONG STORY\n"]),
        ("reserve", "closed", ["refused: try again in 1 s\n"; 2]),
        ("retry", "open", ["1: sent\n", "100 at once: sent\n"]),
        ("retry", "closed", ["1: given up\n", "100 at once: given up\n"]),
    ];
    for (name, fail, expected) in rows {
        let extension = ["py", "mjs", "sh"][language];
        let mut program = Command::new(interpreter);
        program.arg(recipes().join(place).join(format!("{name}.{extension}")));
        let like = command(language, "", &address);
        program.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let (out, err) = output(program.env("FAIL", fail).env("TOLLGATE_WAIT", "1"));
        assert!(out.starts_with(expected[0]) && out.ends_with(expected[1]), "{fail}: {out}\n{err}");
        assert!(err.contains("tollgate did not answer"), "{err}");
    }
}

macro_rules! languages {
    ($($language:ident, $index:literal;)*) => {$(
        mod $language {
            #[test]
            fn reserve_keeps_the_result() {
                super::reserve_keeps_the_result($index);
            }

            #[test]
            fn retry_goes_on_or_gives_up() {
                super::retry_goes_on_or_gives_up($index);
            }

            #[test]
            fn stopped_before() {
                super::stopped_before($index);
            }
        }
    )*};
}

languages! {
    python, 0;
    node, 1;
    shell, 2;
}
